"""Random model files as a person would write them: what is called complete computes what torch does.

Each module of this package writes one sort of program, ``compare`` converts and runs them. A program that goes wrong
is shown whole, with its number, which makes it again.
"""
