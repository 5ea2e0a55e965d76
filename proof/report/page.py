from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec


def write_report(path: Path, result: Any, story: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.with_suffix(".json")
    file.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1))
    return file
