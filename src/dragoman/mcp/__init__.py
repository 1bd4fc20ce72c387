"""Dragoman as an MCP server: agents and programs start sessions, prompt them, and read results."""
