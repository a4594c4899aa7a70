"""The memory of the engine: tables that grow, how kernels read them, and how kernels are compiled."""
