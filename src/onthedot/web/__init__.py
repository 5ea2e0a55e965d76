"""The dashboard. Its pages use the service layer, never SQL.

Each module in `pages/` is one page with its actions; all of them are found here by their `routes`.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from onthedot.api.operations import Endpoint
from onthedot.web import pages
from onthedot.web.static import routes as _static

__all__ = ["routes"]


def _found() -> list[Endpoint]:
    names = sorted(each.name for each in iter_modules(pages.__path__, f"{pages.__name__}."))
    return [endpoint for name in names for endpoint in import_module(name).routes]


routes = [*_found(), *_static]
"""Pass these to `create_app(extra_routes=…)`."""
