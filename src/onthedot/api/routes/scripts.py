"""Uploaded scripts. A script is known by the hash of its content, and belongs to a tenant."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import read_body
from onthedot.api.http.idempotency import idempotency_key
from onthedot.api.http.paging import PAGING, page_answer
from onthedot.api.http.query_params import read_query
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import MIB, operation
from onthedot.errors import NotFound
from onthedot.model.decoding import decode_json
from onthedot.model.script import SCRIPT_ID, ScriptDetail, ScriptUpload, ScriptView

__all__ = ["routes"]

LARGEST = 4 * MIB
"""A script of 1 MiB as JSON: quotes, line ends and other characters take more than one byte there."""


class ScriptList(msgspec.Struct, frozen=True):
    """`next` is the URL of the next page, null on the last page."""

    items: list[ScriptView]
    next: str | None


@operation(
    "POST",
    "/v1/scripts",
    "write",
    group="Scripts",
    body=ScriptUpload,
    answers={201: ScriptView, 200: ScriptView},
    idempotent=True,
    limit=LARGEST,
    example={
        "name": "report.py",
        "code": "import json, sys\nparams = json.load(sys.stdin)\nprint(json.dumps(params))\n",
    },
)
async def upload_script(request: Request) -> HttpResponse:
    """Upload a script.

    Its `id` is the SHA-256 of its code; jobs name it in `target.script`. At most 1 MiB.
    The same code again is answered with 200 and changes nothing, so a request can be repeated safely.
    """
    raw = await read_body(request)
    service = service_of(request)
    # beside the loop: a megabyte takes milliseconds
    upload = await service.aside.run(decode_json, raw, ScriptUpload)
    view, is_new = await service.upload_script(tenant_of(request), upload, await idempotency_key(request))
    return responses.json(view, 201 if is_new else 200, {"location": f"/v1/scripts/{view.id}"})


@operation("GET", "/v1/scripts", "read", group="Scripts", query=PAGING, answers={200: ScriptList})
async def list_scripts(request: Request) -> HttpResponse:
    """List uploaded scripts."""
    asked = read_query(request.scope["query_string"], PAGING)
    return page_answer(
        request, await service_of(request).list_scripts(tenant_of(request), asked["limit"], asked["cursor"])
    )


@operation("GET", "/v1/scripts/{script_id}", "read", group="Scripts", answers={200: ScriptDetail}, problems=(404,))
async def get_script(request: Request) -> HttpResponse:
    """Get an uploaded script with its code and the jobs that use it."""
    return responses.json(await service_of(request).get_script(tenant_of(request), _id(request)))


@operation("DELETE", "/v1/scripts/{script_id}", "write", group="Scripts", answers={204: None}, problems=(404, 409))
async def delete_script(request: Request) -> HttpResponse:
    """Delete an uploaded script.

    409 while a job that has not ended uses it.
    """
    await service_of(request).delete_script(tenant_of(request), _id(request))
    return responses.no_content()


def _id(request: Request) -> str:
    given: str = request.path_params["script_id"]
    if not SCRIPT_ID.fullmatch(given):
        raise NotFound(f"script {given[:100]!r} not found")
    return given


routes = [upload_script, list_scripts, get_script, delete_script]
