"""How a run is set up and followed: its options checked, its agent started, its hub opened."""
