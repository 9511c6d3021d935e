"""Programs in rationals, and the certificate in ball arithmetic: for what doubles do not decide."""
