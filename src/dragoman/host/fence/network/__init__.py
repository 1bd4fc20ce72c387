"""The network of a fence: which hosts its programs reach, and the proxy that is the only way there.

`host_patterns` reads the list of hosts, `network_rules` decides with it and with the rules of
sessions, `proxied_request` reads what a program asks, and `proxy` carries it out.
"""
