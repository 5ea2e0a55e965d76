"""Creates that arrive complete are answered without the framework: the same guard, handlers and answers, less between.

Nothing depends on it: with `ENABLED` False, or `create_app(fast=False)`, every request takes the ordinary way.
"""

from __future__ import annotations

__all__ = ["ENABLED"]

ENABLED = True
