"""Quantities over families of instances, saved as they come."""
