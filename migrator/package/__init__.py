"""Many files as one program: what each one defines, what it imports, and in which order to read them."""

import migrator.plain  # noqa: F401  (before libcst)
