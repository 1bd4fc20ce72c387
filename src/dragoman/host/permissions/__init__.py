"""How permission is obtained: reading a request, asking a person, remembering the answer."""
