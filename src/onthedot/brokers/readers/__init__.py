"""Readers of topics, one module for each client library."""
