"""Diagnostics, one file a rule family."""
