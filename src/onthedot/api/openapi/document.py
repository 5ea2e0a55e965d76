"""The OpenAPI 3.1 document, generated from the declared operations and the types of the model."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from types import UnionType
from typing import Any

from onthedot.api.http.bodies import NDJSON_MEDIA
from onthedot.api.http.idempotency import LONGEST_KEY
from onthedot.api.http.path_ids import RUN_ID_PATTERN
from onthedot.api.http.problems import PROBLEM_MEDIA, Problem
from onthedot.api.openapi.schemas import Schemas
from onthedot.api.operations import Operation
from onthedot.model.job import KEY_PATTERN
from onthedot.model.script import SCRIPT_ID

__all__ = ["openapi_document"]

INTRODUCTION = (
    "Times are RFC 3339 in UTC with milliseconds. Errors are problem documents (RFC 9457). Lists are paginated: follow "
    "`next`. POST requests honour `Idempotency-Key` for 24 hours; updates and verbs honour `If-Match` with the job's "
    "ETag. Unknown query parameters and body fields are rejected. A change whose client has disconnected, or that "
    "could not be carried out within 30 s, writes nothing (503)."
)
PATH_PARAMS: dict[str, dict[str, Any]] = {
    "job_id": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 2**63 - 1},
    "version": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 2**63 - 1},
    "operation_id": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 2**63 - 1},
    "incident_id": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 2**63 - 1},
    "timer_id": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 2**63 - 1},
    "key_id": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 2**63 - 1},
    "node_id": {"type": "string", "minLength": 1, "maxLength": 200},
    "destination": {
        "type": "string",
        "minLength": 1,
        "maxLength": 1000,
        "description": "Scheme, host and port of a URL, percent-encoded, or the name of a broker",
    },
    "script_id": {"type": "string", "pattern": f"^{SCRIPT_ID.pattern}$"},
    "run_id": {"type": "string", "pattern": f"^{RUN_ID_PATTERN}$"},
    "token": {"type": "string", "minLength": 1, "maxLength": 200},
    "signal": {"type": "string", "pattern": "^(start|fail|log|[0-9]{1,3})$"},
    "key": {"type": "string", "pattern": KEY_PATTERN.replace(r"\Z", "$")},
}
HEADER_ETAG = {"ETag": {"description": "The job's version", "schema": {"type": "string"}}}
HEADER_RETRY = {"Retry-After": {"description": "Seconds to wait before retrying", "schema": {"type": "integer"}}}
HEADER_AUTH = {"WWW-Authenticate": {"description": "The authentication scheme", "schema": {"type": "string"}}}
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Requests with the same key and body are carried out once and get the same response, for 24 hours",
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY},
}
IF_MATCH = {
    "name": "If-Match",
    "in": "header",
    "description": 'Carry the request out only if the job still has this ETag, such as `"3"`; otherwise 412',
    "schema": {"type": "string", "minLength": 1},
}


def openapi_document(operations: Iterable[Operation], version: str) -> dict[str, Any]:
    listed = [declared for declared in operations if declared.listed]
    schemas = Schemas()
    paths: dict[str, dict[str, Any]] = {}
    for declared in listed:
        paths.setdefault(declared.path, {})[declared.method.lower()] = _operation(declared, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "On the Dot",
            "version": version,
            "description": INTRODUCTION,
            "license": {"name": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": group} for group in dict.fromkeys(declared.group for declared in listed)],
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "An API key: otd_…"}},
        },
    }


def _operation(declared: Operation, schemas: Schemas) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": declared.name,
        "summary": declared.summary,
        "tags": [declared.group],
        "security": [] if declared.access == "public" else [{}, {"key": []}],
        "parameters": _parameters(declared),
        "responses": _responses(declared, schemas),
    }
    needs = "" if declared.access == "public" else f"Requires the scope `{declared.access}`."
    described["description"] = " ".join(part for part in (declared.description, needs) if part)
    if declared.body is not None:
        content: dict[str, Any] = {"schema": schemas.of(declared.body)}
        if declared.example is not None:
            content["example"] = declared.example
        lines = {media: {"schema": {"type": "string"}} for media in declared.media if media == NDJSON_MEDIA[0]}
        plain = {media: content for media in declared.media if media.endswith(("/json", "+json"))}
        described["requestBody"] = {"required": declared.body_required, "content": {**plain, **lines}}
    return {name: value for name, value in described.items() if value != "" or name == "security"}


def _parameters(declared: Operation) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": PATH_PARAMS[name]}
        for name in re.findall(r"\{(\w+)\}", declared.path)
    ]
    found += [
        {"name": p.name, "in": "query", "required": p.required, "description": p.description, "schema": p.schema}
        for p in declared.query
    ]
    if declared.idempotent:
        found.append(IDEMPOTENCY_KEY)
    if declared.conditional:
        found.append(IF_MATCH)
    return found


def _responses(declared: Operation, schemas: Schemas) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, kind in declared.answers.items():
        responses[str(status)] = answer = {"description": HTTPStatus(status).phrase}
        if declared.etag:
            answer["headers"] = HEADER_ETAG  # type: ignore[assignment]
        if isinstance(kind, str):
            answer["content"] = {kind: {"schema": {"type": "string"}}}  # type: ignore[assignment]
        elif kind is not None:
            # one of several structs, which msgspec would only read if they were tagged
            several = [schemas.of(each) for each in kind.__args__] if isinstance(kind, UnionType) else []
            schema = {"oneOf": several} if several else schemas.of(kind)
            answer["content"] = {"application/json": {"schema": schema}}  # type: ignore[assignment]
    for status in sorted(_problem_statuses(declared)):
        responses.setdefault(str(status), _problem_response(status, schemas))
    return responses


def _problem_statuses(declared: Operation) -> set[int]:
    """The error statuses that any operation of this form may return."""
    statuses = {*declared.problems, 400}
    if declared.access != "public":
        statuses |= {401, 403, 503}
    if "{" in declared.path:
        statuses.add(404)
    if declared.body is not None:
        statuses |= {404, 408, 413, 415, 422}
    statuses.add(422)  # a parameter that nobody knows
    if declared.conditional:
        statuses.add(412)
    return statuses


def _problem_response(status: int, schemas: Schemas) -> dict[str, Any]:
    response: dict[str, Any] = {
        "description": HTTPStatus(status).phrase,
        "content": {PROBLEM_MEDIA: {"schema": schemas.of(Problem)}},
    }
    headers = {401: HEADER_AUTH, 429: HEADER_RETRY, 503: HEADER_RETRY}.get(status)
    return response if headers is None else {**response, "headers": headers}
