"""Programs in rationals, and the certificate in ball arithmetic: for programs on which doubles are not accurate enough."""
