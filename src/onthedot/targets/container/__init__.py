"""The kind `container`: images that the operator allows, run by a container engine."""
