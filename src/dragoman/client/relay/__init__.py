"""The way from an agent to the MCP servers of this process."""
