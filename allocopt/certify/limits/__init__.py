"""Limits on an allocation: upper bounds that leave no room, and the certificate where linear constraints hold."""
