"""Worktrees of the user's repositories, in which sessions work apart from the user's checkout."""
