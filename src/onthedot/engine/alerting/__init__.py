"""Alerts: finding what only somebody who looks can find, and delivering messages."""
