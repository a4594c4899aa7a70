"""``python -m bench.tokenizers``."""

from bench.tokenizers.command import main

main()
