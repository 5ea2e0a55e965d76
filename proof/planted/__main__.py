"""`python -m proof.planted`."""

from __future__ import annotations

import sys

from proof.planted.command import main

if __name__ == "__main__":
    sys.exit(main())
