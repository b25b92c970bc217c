"""Helpers without what the file does not use: options nobody passes, branches no call takes, methods nobody calls.

A helper knows all that torch's layer knows. A file that carries its helpers shows every call there is, so an option that
none of them passes has its default wherever it is read, as a person would have written the layer for this file.
"""

from migrator.convert.trim.trim import trimmed

__all__ = ["trimmed"]
