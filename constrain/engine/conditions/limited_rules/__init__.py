"""The condition that rules with ``[max_tokens]`` are over after so many tokens."""
