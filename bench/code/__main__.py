"""``python -m bench.code``."""

from bench.code.command import code

if __name__ == "__main__":
    code(prog_name="python -m bench.code")
