"""What stays of a run: its agent, in a process that the run leaves behind."""
