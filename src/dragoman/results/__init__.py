"""Typed results: what a program wants of an agent's answer, and whether an answer is that. Pure."""
