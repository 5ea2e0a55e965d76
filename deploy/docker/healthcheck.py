"""The image's health check: exit code 0 if the node here is ready; with the argument /healthz, if it is alive.

Asks the API, or METRICS_PORT of a node without one; with a second argument that port, as for a witness, which has no
role. A node that serves neither is healthy as long as it runs. It is started often while a container starts, so
it imports little: a client library would cost more than the answer.
"""

import os
import socket
import sys


def main() -> int:
    path = sys.argv[1] if len(sys.argv) > 1 else "/readyz"
    given = sys.argv[2] if len(sys.argv) > 2 else None
    serves_api = given is None and "api" in (os.environ.get("ONTHEDOT_ROLES") or "api,executor")
    served = (os.environ.get("ONTHEDOT_PORT") or "8000") if serves_api else os.environ.get("ONTHEDOT_METRICS_PORT")
    port = given or served
    if not port:
        return 0
    root = (os.environ.get("ONTHEDOT_ROOT_PATH") or "").rstrip("/") if serves_api else ""
    has_tls = serves_api and bool(os.environ.get("ONTHEDOT_TLS_CERT"))
    try:
        said = ask(int(port), root + path, has_tls=has_tls)
    except OSError as error:
        said = str(error)
    if said.split(" ")[1:2] == ["200"]:
        return 0
    sys.stdout.write(f"{path} on port {port}: {said}\n")
    return 1


def ask(port: int, path: str, *, has_tls: bool) -> str:
    """The first line of the answer."""
    connection = socket.create_connection(("127.0.0.1", port), 4)
    if has_tls:
        import ssl

        trusting = ssl.create_default_context()  # the certificate names the server's public address, not this one
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        connection = trusting.wrap_socket(connection)
    with connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        with connection.makefile("rb") as answer:
            return answer.readline().decode("latin-1").rstrip()


if __name__ == "__main__":
    sys.exit(main())
