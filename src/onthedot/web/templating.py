"""Templates with autoescaping; an undefined variable is an error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any

import jinja2
from jinja2 import meta
from starlette.requests import Request

from onthedot.api.auth import may
from onthedot.api.context import base_of, context_of
from onthedot.service.keys import DEFAULT_TENANT
from onthedot.web import words
from onthedot.web.links import Links
from onthedot.web.navigation import navigation
from onthedot.web.notice import Notice
from onthedot.web.static import static_url

__all__ = ["FREEZE", "load", "prepare", "render", "render_alone"]


FREEZE = "onthedot.freeze"
"""Where a request's scope says whether all is paused."""


def render(request: Request, template: str, *, notice: Notice | None = None, part: bool = False, **values: Any) -> str:
    """`part`: only the block `live`, which is what the script of the page puts in place of the old one. By way of the
    whole template all the same: the block may use macros that stand above it."""
    context = {**_shared(request), "notice": notice, "only_live": part, **values}
    context["ui"] = _environment().get_template("ui.html").make_module(context)
    return _environment().get_template(template).render(context)


def render_alone(template: str, root: str, **values: Any) -> str:
    """A template that stands alone, where there is neither a request nor an application."""
    links = {"url": lambda path: root + path, "static": lambda name: root + static_url(name)}
    return (
        _environment().get_template(template).render(root=root, pages=frozenset(), only_live=False, **links, **values)
    )


def _shared(request: Request) -> dict[str, Any]:
    """What every template can use."""
    principal = request.scope.get("principal")  # None before it is known who asks: the login page, some problems
    is_admin = principal is not None and may(principal, "admin")
    links = Links(request)
    entries = navigation(request.app.operations)
    return {
        "url": links.url,
        "here": links.here,
        "back": links.back,
        "root": links.root,
        "static": lambda name: links.root + static_url(name),
        "base": base_of(request),
        "now": context_of(request).clock.now_ms(),
        "nav": [(entry, entry.is_current(links.path)) for entry in entries],
        "pages": frozenset(entry.path for entry in entries) | _page_paths(request),
        "own_search": links.path == "/jobs",
        "known": principal is not None,
        "open": principal is not None and principal.key_id is None,
        "key_name": None if principal is None else principal.name,
        "freeze": request.scope.get(FREEZE),
        "may_write": principal is not None and may(principal, "write"),
        "is_admin": is_admin,
        "may_freeze": is_admin and principal is not None and principal.tenant == DEFAULT_TENANT,
    }


def _page_paths(request: Request) -> frozenset[str]:
    """The patterns of all pages, `/jobs/{job_id}` among them: a template links only what there is."""
    return frozenset(each.path for each in request.app.operations if each.page)


@lru_cache(1)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("onthedot.web"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["pieces"] = words.pieces
    environment.filters["duration"] = words.how_long
    environment.filters["relative"] = words.relative
    environment.filters["utc"] = words.utc
    environment.filters["timetable"] = words.timetable_words
    environment.filters["instants"] = words.instants
    environment.filters["in_zone"] = words.in_zone
    environment.filters["kind"] = words.kind_words
    environment.filters["number"] = words.number
    environment.filters["sentence"] = words.sentence
    environment.filters["status_words"] = words.status_words
    return environment


_loaded: set[str] = set()


async def load(template: str) -> None:
    """Compile it and all that it extends, imports and includes, unless that is done. In a thread: for the largest page
    it takes a quarter of a second, during which nothing would fire."""
    if template not in _loaded:
        await asyncio.to_thread(_load, template)


def _load(template: str) -> None:
    environment = _environment()
    waiting, seen = [template, "ui.html"], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen or name in _loaded:
            continue
        seen.add(name)
        environment.get_template(name)
        assert environment.loader is not None
        source, _, _ = environment.loader.get_source(environment, name)
        waiting += [each for each in meta.find_referenced_templates(environment.parse(source)) if each is not None]
    _loaded.update(seen)


async def prepare(pause: Callable[[float], Awaitable[None]]) -> None:
    """Load all templates, one after the other beside everything else: a page that is asked for before its turn loads
    its own. Done before the start, it was a fifth of the time until a node is ready."""
    for name in ["problem.html", "problem_inside.html", *_environment().list_templates()]:
        await load(name)
        await pause(0.05)
