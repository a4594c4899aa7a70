"""Samplers made of steps in any order, one file a step."""
