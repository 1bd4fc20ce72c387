"""The doctor: starts an agent, checks it, and reports what a client can rely on."""
