"""What happened in a folder: snapshots of it, the differences between them, and the way back."""
