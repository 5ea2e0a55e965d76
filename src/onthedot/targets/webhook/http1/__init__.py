"""HTTP/1.1 over connections of our own."""
