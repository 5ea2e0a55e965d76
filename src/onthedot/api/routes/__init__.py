"""The routes: each reads a request, calls one verb of the service, writes the answer."""
