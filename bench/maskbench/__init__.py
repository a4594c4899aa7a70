"""Masks side by side: this engine and others on the same schemas, the same tokens, in one run.

``python -m bench.maskbench --help``.  How it measures, and how far to believe it: docs/benchmarks.md.
"""
