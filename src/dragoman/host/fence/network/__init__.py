"""The network of a fence: which hosts its programs reach, and the proxy that is the only way there.

`host_patterns` reads the list of hosts, `network_rules` decides with it and with the rules of
sessions, and `proxy` reads what a program asks and carries it out.
"""
