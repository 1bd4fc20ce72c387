"""Trials of real agents: every feature of each agent, on each face of Dragoman."""
