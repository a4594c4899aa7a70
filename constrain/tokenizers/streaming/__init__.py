"""Text from ids that arrive one at a time."""
