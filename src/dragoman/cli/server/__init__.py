"""What the servers `serve` and `bridge` share: their address options and their log."""
