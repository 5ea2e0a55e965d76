"""Requests that mean harm, and how long each of them held the loop of a real server."""
