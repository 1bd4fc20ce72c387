"""Races: several agents do one task, each in a worktree of its own, and the tests judge them."""
