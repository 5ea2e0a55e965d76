"""Headers by which a request tells that a proxy passed it on."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["FORWARDED", "forwarding_header"]

PREFIX = "x-forwarded"
"""X-Forwarded-For, -Host, -Proto, -Prefix, -Ssl, -User … : every proxy has its own set."""
FORWARDED = (
    "forwarded",
    "forwarded-for",
    "via",
    "x-original-forwarded-for",
    "x-original-host",
    "x-original-url",
    "x-rewrite-url",
    "x-host",
    "x-scheme",
    "x-url-scheme",
    "front-end-https",
    "x-real-ip",
    "x-client-ip",
    "client-ip",
    "x-remote-addr",
    "x-remote-ip",
    "x-originating-ip",
    "x-cluster-client-ip",
    "x-proxyuser-ip",
    "proxy-client-ip",
    "wl-proxy-client-ip",
    "x-appengine-user-ip",
    "x-arr-log-id",
    "x-azure-clientip",
    "x-azure-socketip",
    "x-ms-forwarded-client-ip",
    "x-envoy-external-address",
    "x-varnish",
    "true-client-ip",
    "cf-connecting-ip",
    "cf-ray",
    "do-connecting-ip",
    "fly-client-ip",
    "fastly-client-ip",
    "incap-client-ip",
    "x-amz-cf-id",
    "x-nf-client-connection-ip",
    "x-sucuri-clientip",
    "x-vercel-forwarded-for",
    "cdn-loop",
)
"""What reverse proxies, load balancers and content delivery networks add beside those."""
_KNOWN = frozenset(FORWARDED)


def forwarding_header(headers: Iterable[str]) -> str | None:
    """The header, of these names, that shows that a proxy passed the request on; None: there is none."""
    for name in headers:
        folded = name.lower()
        if folded in _KNOWN or folded.startswith(PREFIX):
            return folded
    return None
