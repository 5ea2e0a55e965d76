"""Messages that create jobs, while the broker is restarted and nodes are killed: each job must exist exactly once."""
