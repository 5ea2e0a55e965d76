"""What an API server refuses, and in which words."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import referencing
from aiohttp import web

__all__ = ["VERSIONS", "Refused", "checked_body", "checked_query", "status_body"]

VERSIONS = ("1.29", "1.37")
"""The oldest and the newest version of Kubernetes whose schemas each body must fit."""
_SCHEMAS = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema"
_FILES = {
    "Job": "job-batch-v1.json",
    "DeleteOptions": "deleteoptions-meta-v1.json",
    "SelfSubjectAccessReview": "selfsubjectaccessreview-authorization-v1.json",
}
_LABEL_NAME = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class Refused(Exception):
    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


def status_body(refused: Refused) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "message": str(refused),
        "reason": refused.reason,
        "code": refused.status,
    }


def checked_query(request: web.Request, known: set[str]) -> dict[str, str]:
    """A real one ignores what it does not know: here it is a mistake of ours."""
    query = dict(request.query)
    if unknown := query.keys() - known:
        raise Refused(400, "BadRequest", f"unknown parameters: {sorted(unknown)}")
    return query


def checked_body(content: bytes) -> dict[str, Any]:
    try:
        body: dict[str, Any] = json.loads(content)
        kind = body["kind"]
        validators = [_validator(version, kind) for version in VERSIONS]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise Refused(400, "BadRequest", f"not a body that is known: {error!r}") from None
    for version, validator in zip(VERSIONS, validators, strict=True):
        for found in validator.iter_errors(body):
            place = ".".join(map(str, found.absolute_path))
            raise Refused(400, "BadRequest", f"strict decoding error ({version}): {place}: {found.message}")
    if kind == "Job":
        _check_job(body)
    return body


@lru_cache(maxsize=16)
def _validator(version: str, kind: str) -> Any:
    """As `kubernetes_validate.validate(…, strict=True)` makes it, kept: that one reads a megabyte each time."""
    folder = _SCHEMAS / f"v{version}.0-local-strict"
    schema = json.loads((folder / _FILES[kind]).read_text())
    definitions = json.loads((folder / "_definitions.json").read_text())
    registry: Any = referencing.Registry()
    for each in (schema, definitions):
        registry = referencing.Resource.from_contents(each) @ registry
    return jsonschema.Draft202012Validator(schema, registry=registry)


def _check_job(body: dict[str, Any]) -> None:
    """What schemas do not say and a real API server checks."""
    meta, spec = body["metadata"], body["spec"]
    pod = spec["template"]["spec"]
    wrong = []
    if not _NAME.fullmatch(meta["name"]):
        wrong.append(f"metadata.name: Invalid value: {meta['name']!r}")
    for labels in (meta.get("labels") or {}, spec["template"].get("metadata", {}).get("labels") or {}):
        for name, value in labels.items():
            if not _LABEL_NAME.fullmatch(name) or not _LABEL_VALUE.fullmatch(value):
                wrong.append(f"metadata.labels: Invalid value: {name}={value}")
    if pod.get("restartPolicy") not in ("Never", "OnFailure"):
        wrong.append(f"spec.template.spec.restartPolicy: Unsupported value: {pod.get('restartPolicy')!r}")
    if spec.get("podFailurePolicy") and pod.get("restartPolicy") != "Never":
        wrong.append("spec.template.spec.restartPolicy: only 'Never' is supported when podFailurePolicy is specified")
    if spec.get("podFailurePolicy") and spec.get("podReplacementPolicy") not in (None, "Failed"):
        wrong.append("spec.podReplacementPolicy: only 'Failed' is supported when podFailurePolicy is specified")
    for container in pod["containers"]:
        resources = container.get("resources") or {}
        for name, amount in (resources.get("requests") or {}).items():
            if name in (resources.get("limits") or {}) and _number(amount) > _number(resources["limits"][name]):
                wrong.append(f"spec.template.spec.containers[0].resources.requests: must be less than {name} limit")
    if wrong:
        name = meta["name"]
        raise Refused(422, "Invalid", f'Job.batch "{name}" is invalid: {"; ".join(wrong)}')


def _number(amount: Any) -> float:
    units = {"m": 0.001, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "k": 1e3, "M": 1e6, "G": 1e9}
    match = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", str(amount))
    assert match is not None
    return float(match[1]) * (units[match[2]] if match[2] else 1.0)
