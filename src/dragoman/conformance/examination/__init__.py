"""Going through the checks, with an agent or a client, to a report."""
