"""Installing agents from the ACP registry."""
