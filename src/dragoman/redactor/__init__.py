"""Removes secrets from what leaves the machine: texts, and the events of a session. Pure."""
