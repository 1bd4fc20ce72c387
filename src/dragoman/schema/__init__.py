"""What ACP says: generated structs and method tables for each protocol version, and their codec.

`dragoman.schema.v1` and `.v2` are imported by the code that speaks that version, not from here.
"""

from dragoman.schema.codec import decode, encode
from dragoman.schema.model import Method, Model, Unknown

__all__ = ["Method", "Model", "Unknown", "decode", "encode"]
