"""`make test-manual` types the manual, which takes minutes; `make test` counts its blocks."""

from __future__ import annotations

import os

collect_ignore = [] if os.environ.get("MANUAL") else ["test_every_snippet.py"]
