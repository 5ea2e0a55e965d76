"""What AsyncClient can do, one module per area of the HTTP API."""
