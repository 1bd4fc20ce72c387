"""Dragoman as an ACP agent: every editor that speaks ACP is a window of this user's sessions."""
