"""Bytes to frames to messages and back. Pure: no asyncio, no clock, no files, no ACP."""
