"""Schedules: which arm to play when."""
