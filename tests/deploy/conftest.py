"""`make test-deploy` builds and runs the image, and asks helm, promtool and systemd; `make test` only reads the files
(these two, and tests/unit/test_deploy_files.py)."""

from __future__ import annotations

import os
from pathlib import Path

READ_ONLY = ("test_manifests.py", "test_monitoring_files.py")
collect_ignore = [
    file.name
    for file in Path(__file__).parent.glob("test_*.py")
    if file.name not in READ_ONLY and not os.environ.get("DEPLOY")
]
