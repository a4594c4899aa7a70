"""Internationalized host names."""
