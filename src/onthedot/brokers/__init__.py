"""Connections to message brokers that the operator configured: one module for each client library."""
