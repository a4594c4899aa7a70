"""How scalar and listed values are written, and what writers of values share."""
