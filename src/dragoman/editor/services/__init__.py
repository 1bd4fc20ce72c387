"""What an editor does for agents: files, terminals, MCP servers."""
