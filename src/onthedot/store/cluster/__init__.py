"""What nodes share: their rows, maintenance, API keys and sessions."""
