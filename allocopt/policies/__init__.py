"""Policies: rules that choose the next arm, one a file, all behind the interface of `base.py`."""
