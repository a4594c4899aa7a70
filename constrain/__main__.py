"""``python -m constrain`` is the command ``constrain``."""

import sys

from constrain.cli.main import main

sys.exit(main())
