"""``python -m pilothouse`` is the command ``pilothouse``."""

import sys

from pilothouse.cli.main import main

if __name__ == "__main__":
    sys.exit(main(program="pilothouse"))
