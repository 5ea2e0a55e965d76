"""Check-ins of jobs that run elsewhere."""
