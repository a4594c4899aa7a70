"""How kernels become machine code: shipped in a library, or compiled by numba and kept on disk."""
