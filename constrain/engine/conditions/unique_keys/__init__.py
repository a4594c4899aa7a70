"""The condition that no object has a key twice, and that keys do not run out."""
