"""Random campaigns against independent judges: ``python -m bench.fuzz``; see docs/fuzzing.md.

A kind of campaign is one file of this folder (kinds.py lists them).  It makes random cases, and judges each; what is
wrong is a :class:`bench.fuzz.protocol.Difference` with the smallest case that was found.
"""
