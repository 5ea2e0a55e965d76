"""HTTP, and nothing but HTTP: each handler reads a request, calls one verb of the service, writes the answer."""
