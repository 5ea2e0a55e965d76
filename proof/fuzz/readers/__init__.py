"""Everything in On the Dot that reads text from outside."""

from __future__ import annotations

from proof.fuzz.reader import Reader
from proof.fuzz.readers.answers import ANSWERS
from proof.fuzz.readers.bodies import BODIES
from proof.fuzz.readers.crons import CRONS
from proof.fuzz.readers.cursors import CURSORS
from proof.fuzz.readers.heads import HEADS
from proof.fuzz.readers.jobs_files import JOBS_FILES
from proof.fuzz.readers.urls import URLS

__all__ = ["READERS"]

READERS: dict[str, Reader] = {
    reader.name: reader for reader in (ANSWERS, HEADS, URLS, CRONS, JOBS_FILES, CURSORS, BODIES)
}
