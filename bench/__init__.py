"""What the figures in the README and in docs/ come from.  Not part of the installed package."""
