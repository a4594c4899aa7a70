"""Short texts in one kernel call."""
