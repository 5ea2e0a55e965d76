"""API documentation: /openapi.json for programs, /docs for people. Works offline."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup, escape
from starlette.requests import Request

from onthedot.api.context import context_of, root_of, service_of
from onthedot.api.http import responses
from onthedot.api.http.query_params import read_query
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.model.decoding import encode_json

__all__ = ["routes"]

SAMPLE_IDS = {"job_id": "1", "timer_id": "1", "key_id": "1", "key": "nightly-report", "run_id": "1-1767225600000"}
SAMPLE_IDS["script_id"] = "sha256:" + 64 * "0"
SAMPLE_IDS["node_id"] = "node-1"
SAMPLE_IDS["version"] = "3"
SAMPLE_IDS["operation_id"] = "1"
SAMPLE_IDS["token"] = "TOKEN"  # noqa: S105  # a placeholder
SAMPLE_IDS["signal"] = "start"
SAMPLE_IDS["incident_id"] = "1"
SAMPLE_IDS["destination"] = "https%3A%2F%2Fexample.com"


@operation("GET", "/openapi.json", "public", answers={200: "application/json"}, listed=False)
async def openapi_json(request: Request) -> HttpResponse:
    """The OpenAPI 3.1 document."""
    read_query(request.scope["query_string"], ())
    documents = context_of(request).documents
    if "openapi" not in documents:
        documents["openapi"] = await service_of(request).aside.run(lambda: encode_json(request.app.openapi))
    return HttpResponse(documents["openapi"])


@operation("GET", "/docs", "public", answers={200: "text/html"}, listed=False)
async def docs(request: Request) -> HttpResponse:
    """The API documentation as a page."""
    read_query(request.scope["query_string"], ())
    documents = context_of(request).documents
    if "docs" not in documents:
        made = await service_of(request).aside.run(lambda: render(request.app.openapi, root_of(request)))
        documents["docs"] = made.encode()  # one text for all who read it, however slowly
    return responses.html(documents["docs"])


@operation("GET", "/docs/style.css", "public", answers={200: "text/css"}, listed=False)
async def docs_style(request: Request) -> HttpResponse:
    """The style sheet of the documentation."""
    return responses.plain(_style(), "text/css")


@lru_cache(1)
def _style() -> str:
    return files("onthedot.api").joinpath("assets/docs.css").read_text("utf-8")


def render(document: dict[str, Any], root: str = "") -> str:
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            groups.setdefault(described["tags"][0], []).append(_entry(path, method.upper(), described))
    source = files("onthedot.api").joinpath("templates/docs.html").read_text("utf-8")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["words"] = _words
    environment.filters["prose"] = _prose
    environment.filters["slug"] = lambda text: text.lower().replace(" ", "-")
    return environment.from_string(source).render(
        info=document["info"], groups=groups, schemas=document["components"]["schemas"], root=root
    )


def _entry(path: str, method: str, described: dict[str, Any]) -> dict[str, Any]:
    content = described.get("requestBody", {}).get("content", {})
    body: dict[str, Any] = next(iter(content.values()), {})
    return {
        **described,
        "path": path,
        "method": method,
        "body": _words(body["schema"]) if body else None,
        "curl": _curl(path, method, body.get("example")),
        "answers": [
            (status, answer["description"], [_words(c["schema"]) for c in answer.get("content", {}).values()])
            for status, answer in described["responses"].items()
            if status < "300"
        ],
        "problems": [status for status in described["responses"] if status >= "400"],
    }


def _curl(path: str, method: str, example: Any) -> str:
    filled = re.sub(r"\{(\w+)\}", lambda match: SAMPLE_IDS[match[1]], path)
    words = ["curl"]
    if method != "GET":
        words.append(f"-X {method}")
    if path == "/v1/events":
        words.append("-N")
    words.append(f"http://127.0.0.1:8000{filled}")
    if example is not None:
        words.append("-H 'content-type: application/json'")
        words.append(f"-d '{json.dumps(example)}'")
    return " \\\n  ".join([" ".join(words[:3]), *words[3:]]) if len(" ".join(words)) > 90 else " ".join(words)


def _prose(text: str) -> Markup:
    """Text with `code` in it."""
    parts = text.split("`")
    marked = [Markup("<code>{}</code>").format(part) if i % 2 else escape(part) for i, part in enumerate(parts)]
    return Markup().join(marked)


def _words(schema: dict[str, Any]) -> str:
    """A JSON schema in a few words: `JobSpec`, `list of string`, `integer or null`."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(_words(one) for one in schema[several])
    if "enum" in schema:
        return " | ".join(json.dumps(one) for one in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_words(schema.get('items', {}))}"
    low, high = schema.get("minimum"), schema.get("maximum")
    bounds = f" {low}…{high}" if low is not None and high is not None and high < 2**53 else ""
    return f"{schema.get('format', schema.get('type', 'any value'))}{bounds}"


routes = [openapi_json, docs, docs_style]
