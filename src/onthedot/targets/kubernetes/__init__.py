"""The kind `kubernetes`: Jobs of a cluster."""
