"""What `q` asks for: words, each of which a job must have in its key, name, tags or target."""

from __future__ import annotations

from onthedot.store.jobs.rows import search_text

__all__ = ["SHORT", "after_prefix", "prefix_of", "words_of"]

SHORT = 3
"""A word with fewer letters is looked for where something begins, not anywhere."""

MOST = 10
END = "\U0010ffff"  # no text goes on with this, so every text with a prefix comes before prefix + END


def words_of(q: str | None) -> list[str]:
    """Case-folded, each once; what goes beyond ten words is not looked for."""
    return list(dict.fromkeys((search_text(q) or "").split()))[:MOST]


def prefix_of(q: str | None) -> str:
    return (search_text(q) or "").strip()


def after_prefix(prefix: str) -> str:
    """Above all texts that begin so."""
    return prefix + END
