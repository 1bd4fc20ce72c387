"""The stage on which clients are examined: they start an agent whose scenes are played here."""
