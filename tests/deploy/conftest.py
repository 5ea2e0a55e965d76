"""`make test-deploy` builds and runs the image; `make test` only reads the files (tests/unit/test_deploy_files.py)."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("DEPLOY") else ["test_*.py"]
