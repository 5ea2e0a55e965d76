"""What the jobs of the demo call. Nothing here leaves the machine."""
