"""The hub over HTTP: a route table, one guard around it, streams with cursors, and the page."""
