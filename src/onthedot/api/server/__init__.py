"""uvicorn, bounded against clients that mean harm."""
