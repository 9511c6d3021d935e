"""The certificate of arms that are looked at block by block."""
