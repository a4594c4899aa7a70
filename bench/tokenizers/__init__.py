"""Tokenizers beside the reference libraries: speed, latency, memory."""
