"""RFC 7396: a patch names what changes; null takes a field away."""

from __future__ import annotations

from typing import Any

from onthedot.model.schedule import SCHEDULE_KINDS

__all__ = ["merge_patch", "patched"]


def merge_patch(document: Any, patch: Any) -> Any:
    """A new document; neither argument is changed."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def patched(spec: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """A job's spec with a patch on it. A patch that names another kind of schedule or target means that kind instead of
    the old one, not beside it: plain RFC 7396 would want a null for every field that no longer applies."""
    spec = dict(spec)
    schedule, target = patch.get("schedule"), patch.get("target")
    if isinstance(schedule, dict) and any(schedule.get(kind) is not None for kind in SCHEDULE_KINDS):
        spec["schedule"] = {name: value for name, value in spec["schedule"].items() if name not in SCHEDULE_KINDS}
    if isinstance(target, dict) and target.get("type") not in (None, spec["target"]["type"]):
        spec["target"] = {}
    merged: dict[str, Any] = merge_patch(spec, patch)
    return merged
