"""The conformance kit: checks that an agent, or a client, keeps to the specification of ACP.

One table (`catalogue`) has every check, with the sentence of the specification it stands on. Agents
are examined by a raw client (`probe`), clients by agents that play scenes for them.
"""
