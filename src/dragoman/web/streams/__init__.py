"""Responses that stay open: server-sent events, chats, changes of the session list."""
