"""``python -m constrain`` is the command ``constrain``."""

import sys


def run() -> int:
    """The command ``constrain``; Ctrl-C ends it in one line from the start, while its own code is loaded."""
    try:
        from constrain.cli.main import main
    except KeyboardInterrupt:
        print("constrain: interrupted", file=sys.stderr)
        return 130
    return main()


if __name__ == "__main__":
    sys.exit(run())
