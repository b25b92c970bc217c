"""Writers of findings: one output format a file."""
