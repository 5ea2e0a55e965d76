"""The processes that share the work import `command` by its name, so that lives in a module of its own."""

from __future__ import annotations

import sys

from proof.sim.command import main

if __name__ == "__main__":
    sys.exit(main())
