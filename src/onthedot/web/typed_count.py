"""Confirmation in proportion: who changes more than a hundred at once types how many."""

from __future__ import annotations

from onthedot.errors import Invalid
from onthedot.web.forms import Form

__all__ = ["check_typed", "must_be_typed"]

AT_ONCE = 100


def must_be_typed(total: int) -> bool:
    return total > AT_ONCE


def check_typed(form: Form, total: int) -> None:
    """Invalid, unless the number that the question showed (`shown`) was typed, or so few need none."""
    if not must_be_typed(total):
        return
    shown, typed = form.text("shown"), form.text("typed").replace(",", "").replace(" ", "")
    if not shown.isascii() or not shown.isdigit() or typed != shown:
        message = f"does not match the number of matching items ({total:,})"
        raise Invalid.one("typed", message, given=typed[:50], accepted=f"{total}, to confirm that so many are meant")
