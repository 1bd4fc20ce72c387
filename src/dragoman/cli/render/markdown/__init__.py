"""Markdown on a terminal: the stream, tables, and the colours of code."""
