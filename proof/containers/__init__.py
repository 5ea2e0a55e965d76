"""Containers while the engine is restarted and nodes are killed: none lost, none with another name."""
