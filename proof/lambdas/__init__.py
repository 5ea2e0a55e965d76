"""Calls of functions while moto, in the place of AWS, is restarted and nodes are killed: none lost, repeats only with
the same run id."""
