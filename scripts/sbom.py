"""Write a software bill of materials: what an installation consists of, in CycloneDX 1.6.

`make dist` puts two of them beside the wheel: of the node alone (requirements/run.txt), and of one with all extras
(requirements/extras.txt). They list what is pinned there, with the hashes that are checked when it is installed.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BILLS = {"run.txt": "", "extras.txt": "-extras"}
"""What an installation consists of, and what the name of its bill ends in."""
PIN = re.compile(
    r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(\S+)((?:[^\n]*\\\n\s+--hash=sha256:[0-9a-f]{64})+)", re.MULTILINE
)


def components(pinned: str) -> list[dict[str, Any]]:
    found = []
    for name, version, rest in PIN.findall(pinned):
        hashes = re.findall(r"sha256:([0-9a-f]{64})", rest)
        purl = f"pkg:pypi/{re.sub('[-_.]+', '-', name).lower()}@{version}"
        found.append(
            {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "version": version,
                "purl": purl,
                "hashes": [{"alg": "SHA-256", "content": digest} for digest in hashes],
            }
        )
    return found


def document(version: str, pinned: str) -> dict[str, Any]:
    ours = f"pkg:pypi/onthedot@{version}"
    listed = components(pinned)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": ours,
                "name": "onthedot",
                "version": version,
                "purl": ours,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": listed,
        "dependencies": [{"ref": ours, "dependsOn": [each["bom-ref"] for each in listed]}],
    }


def main(folder: str) -> int:
    source = (ROOT / "src" / "onthedot" / "version.py").read_text()
    (version,) = re.findall(r'^__version__ = "([^"]+)"', source, re.MULTILINE)
    for pinned, suffix in BILLS.items():
        bill = document(version, (ROOT / "requirements" / pinned).read_text())
        written = Path(folder) / f"onthedot-{version}{suffix}.cdx.json"
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(json.dumps(bill, indent=2) + "\n")
        print(f"{written}: {len(bill['components'])} components")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "dist"))
