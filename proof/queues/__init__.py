"""Firings that publish to a real broker, while the broker is restarted and nodes are killed: none may be lost, and what
is there twice must have the same id."""
