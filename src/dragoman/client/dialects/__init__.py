"""ACP in our own types: what both versions share, and version 1 and 2 apart."""
