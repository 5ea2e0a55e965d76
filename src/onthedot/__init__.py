"""On the Dot: a job scheduler that fires on the dot."""

from __future__ import annotations

__version__ = "0.1.0"
