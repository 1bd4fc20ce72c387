"""The library's interface: a client, its sessions and their turns, in either version of ACP."""
