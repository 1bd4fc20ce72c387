"""What processes on one store tell each other: owners, hosts, commands for a session."""
