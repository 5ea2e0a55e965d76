"""RFC 7396: a patch names what changes; null takes a field away."""

from __future__ import annotations

from typing import Any

from onthedot.model.policy import BY_FORMULA
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
    the old one, not beside it: plain RFC 7396 would want a null for every field that no longer applies. So does one
    that names a retry plan, or numbers in place of one, and one signing secret or several."""
    spec = dict(spec)
    schedule, target = patch.get("schedule"), patch.get("target")
    if isinstance(schedule, dict) and any(schedule.get(kind) is not None for kind in SCHEDULE_KINDS):
        spec["schedule"] = {name: value for name, value in spec["schedule"].items() if name not in SCHEDULE_KINDS}
    if isinstance(target, dict) and target.get("type") not in (None, spec["target"]["type"]):
        spec["target"] = {}
    if isinstance(retry := _inside(patch, "policy", "retry"), dict):
        spec["policy"] = {**spec["policy"], "retry": _other_retries(spec["policy"]["retry"], retry)}
    if isinstance(target, dict):
        spec["target"] = _other_secrets(spec["target"], target)
    merged: dict[str, Any] = merge_patch(spec, patch)
    return merged


def _inside(patch: Any, *names: str) -> Any:
    for name in names:
        patch = patch.get(name) if isinstance(patch, dict) else None
    return patch


def _other_retries(retry: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    plan, numbers = patch.get("plan"), [name for name in BY_FORMULA if patch.get(name) is not None]
    if plan is not None and not numbers:
        return {name: value for name, value in retry.items() if name not in BY_FORMULA}
    if numbers and plan is None:
        return {name: value for name, value in retry.items() if name != "plan"}
    return retry


def _other_secrets(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    named = {name for name in ("secret", "secrets") if patch.get(name) is not None}
    if len(named) != 1:
        return target
    return {name: value for name, value in target.items() if name not in {"secret", "secrets"} - named}
