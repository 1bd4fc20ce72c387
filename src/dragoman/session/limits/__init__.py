"""Limits of what terminals print and sessions use, and prompts parked at those of providers."""
