"""What restricts a text beyond its grammar: keys that are unique, and a budget of tokens."""
