__version__ = "0.1.0"

DISTRIBUTION = "constrain-llm"
"""What the package index calls this package; there, ``constrain`` is somebody else's."""
