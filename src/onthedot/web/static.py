"""The stylesheets and scripts of the dashboard; pages load no others."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from importlib.resources import files

from starlette.requests import Request

from onthedot.api.http import responses
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.errors import NotFound

__all__ = ["media_by_name", "read_static", "routes", "static_url"]

MEDIA = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@operation("GET", "/static/{name}", "public", answers={200: "text/css"}, listed=False)
async def static_file(request: Request) -> HttpResponse:
    """A static file."""
    name = request.path_params["name"]
    media = media_by_name().get(name)
    if media is None:
        raise NotFound("file not found")
    forever = {"cache-control": "public, max-age=31536000, immutable"}  # the URL changes with the content
    return responses.plain(read_static(name), media, headers=forever)


@lru_cache(1)
def media_by_name() -> dict[str, str]:
    """Every file of the folder, with its media type."""
    found = (each.name for each in files("onthedot.web").joinpath("static").iterdir())
    return {name: MEDIA[name.rpartition(".")[2]] for name in found if name.rpartition(".")[2] in MEDIA}


@lru_cache
def read_static(name: str) -> bytes:
    return files("onthedot.web").joinpath(f"static/{name}").read_bytes()


@lru_cache
def static_url(name: str) -> str:
    """Without the prefix of ROOT_PATH; templates use `static(name)`."""
    return f"/static/{name}?{sha256(read_static(name)).hexdigest()[:12]}"


routes = [static_file]
