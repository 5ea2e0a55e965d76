"""The API of container engines, for the kinds that use one: containers, and scripts if nothing else isolates them."""
