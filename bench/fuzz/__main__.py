"""The command ``python -m bench.fuzz``."""

from bench.fuzz.campaign import main

if __name__ == "__main__":
    main()
