"""Markdown: on a terminal as it streams, with tables and colours, and a session as a document."""
