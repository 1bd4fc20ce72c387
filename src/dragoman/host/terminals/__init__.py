"""Terminals: commands that we run for an agent."""
