"""The kind `function`: registered Python functions in worker processes."""
