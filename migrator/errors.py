"""What went wrong, told to the person who can mend it."""

from __future__ import annotations


class UserError(Exception):
    """One line that says what happened, where, and what to do; the command line prints it and exits with 2."""
