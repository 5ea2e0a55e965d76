"""The kind `command`: programs that the operator registered."""
