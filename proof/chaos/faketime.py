"""PostgreSQL's wall clock, set by libfaketime while it runs. Monotonic clocks stay true."""

from __future__ import annotations

from pathlib import Path

__all__ = ["FakeTime", "find_faketime"]

PLACES = (
    "/usr/lib/x86_64-linux-gnu/faketime",
    "/usr/lib/aarch64-linux-gnu/faketime",
    "/usr/lib/faketime",
    "/usr/lib64/faketime",
)


def find_faketime() -> Path | None:
    """The library (Debian: `faketime`), or None: then wrong clocks are not tried, and the report says so."""
    for place in PLACES:
        found = Path(place) / "libfaketimeMT.so.1"
        if found.exists():
            return found
    return None


class FakeTime:
    """The file is read at every look at the clock: all of PostgreSQL's processes must agree."""

    def __init__(self, library: Path, file: Path) -> None:
        self._library = library
        self._file = file
        self.offset_ms = 0
        self._write()

    def environ(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_NO_CACHE": "1",
        }

    def step(self, by_ms: int) -> None:
        self.offset_ms += by_ms
        self._write()

    def _write(self) -> None:
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{self.offset_ms / 1000:+.3f}\n")
        fresh.chmod(0o644)
        fresh.replace(self._file)
