"""The dashboard. Its pages use the service layer, never SQL."""

from __future__ import annotations

from onthedot.web.destinations import routes as _destinations
from onthedot.web.login import routes as _login
from onthedot.web.overview import routes as _overview
from onthedot.web.static import routes as _static

__all__ = ["routes"]

routes = [*_overview, *_destinations, *_login, *_static]
"""Pass these to `create_app(extra_routes=…)`."""
