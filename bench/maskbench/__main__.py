"""``python -m bench.maskbench``."""

from bench.maskbench.command import mask

if __name__ == "__main__":
    mask(prog_name="python -m bench.maskbench")
