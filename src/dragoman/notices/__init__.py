"""Tells people who are not looking: pushes to devices, a command, a webhook."""
