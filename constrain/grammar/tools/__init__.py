"""Turns of a model that may call tools: reasoning, free text and calls, each in the model's own syntax."""
