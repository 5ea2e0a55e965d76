"""The image's health check: exit code 0 if the node here is ready; with the argument /healthz, if it is alive.

Asks the API, or METRICS_PORT of a node without one. A node that serves neither is healthy as long as it runs.
"""

import os
import ssl
import sys
import urllib.request


def main() -> int:
    path = sys.argv[1] if len(sys.argv) > 1 else "/readyz"
    serves_api = "api" in (os.environ.get("ONTHEDOT_ROLES") or "api,executor")
    port = (os.environ.get("ONTHEDOT_PORT") or "8000") if serves_api else os.environ.get("ONTHEDOT_METRICS_PORT")
    if not port:
        return 0
    root = (os.environ.get("ONTHEDOT_ROOT_PATH") or "").rstrip("/") if serves_api else ""
    scheme = "https" if serves_api and os.environ.get("ONTHEDOT_TLS_CERT") else "http"
    trusting = ssl.create_default_context()  # the certificate names the server's public address, not this one
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    url = f"{scheme}://127.0.0.1:{port}{root}{path}"
    try:
        with urllib.request.urlopen(url, timeout=4, context=trusting) as answer:  # http(s) by the line above
            return 0 if answer.status == 200 else 1
    except OSError as error:
        sys.stdout.write(f"{url}: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
