"""The scripted agent in ACP v2: scripts are written for v1 and translated.

Imported when a client asks for version 2, and not before.
"""
