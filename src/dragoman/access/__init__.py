"""Who may use a server besides the person with its own token."""
