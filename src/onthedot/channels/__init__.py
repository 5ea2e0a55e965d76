"""Channels of alerts: how a message leaves, by an HTTP request, a command or apprise."""
