"""Lists as the server reads them, packed in one go: the driver's own way takes a third of what an
append costs. Knows no tables."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import psycopg
from psycopg import pq
from psycopg.adapt import Dumper

_BYTEA, _INT8 = 17, 20
# Dimensions, whether there are NULLs, the type; then the size and the first index.
_header = struct.Struct(">iiiii")


class Packed:
    """A list of one dimension, as bytes."""

    def __init__(self, kind: int, count: int, items: bytes) -> None:
        self.data = _header.pack(1, 0, kind, count, 1) + items


class Integers(Packed):
    """A bigint[] that is not empty."""

    def __init__(self, values: Sequence[int]) -> None:
        count = len(values)
        pairs = [part for value in values for part in (8, value)]
        super().__init__(_INT8, count, struct.pack(">" + "iq" * count, *pairs))


class Blobs(Packed):
    """A bytea[] that is not empty."""

    def __init__(self, values: Sequence[bytes]) -> None:
        pieces = [part for value in values for part in (len(value).to_bytes(4, "big"), value)]
        super().__init__(_BYTEA, len(values), b"".join(pieces))


class _PackedDumper(Dumper):
    format = pq.Format.BINARY

    def dump(self, obj: Packed) -> bytes:
        return obj.data


class _IntegersDumper(_PackedDumper):
    oid = 1016


class _BlobsDumper(_PackedDumper):
    oid = 1001


psycopg.adapters.register_dumper(Integers, _IntegersDumper)
psycopg.adapters.register_dumper(Blobs, _BlobsDumper)
