"""Agents we know by name: how to start them, and what is peculiar about them."""
