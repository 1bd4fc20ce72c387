"""The scripted agent in ACP v2: scripts are written once, in the words of v1, and told in v2.

Imported when a client asks for version 2, and not before.
"""
