"""JSON to structs and back: one msgspec decode, and a fallback if that fails.

Knows no protocol version: everything is read off the struct it is asked for. The second look is
`salvage`: it keeps what the schema does not know and mends what the schema says may be mended.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import DecodeError, Raw, ValidationError

from dragoman.errors import InvalidMessage

from .decoders import decoder
from .model import Unknown
from .salvage import Misfit, second_look

T = TypeVar("T")


def decode(data: bytes | Raw, type_: type[T]) -> T:
    """The value of type `type_` that `data` is, or `InvalidMessage`."""
    return examine(data, type_)[0]


def examine(data: bytes | Raw, type_: type[T]) -> tuple[T, bool]:
    """The same, and whether it fits as it is: else parts of it may have been left out."""
    try:
        try:
            return decoder(type_).decode(data), True
        except ValidationError:
            return second_look(data, type_), False
    except Misfit as misfit:
        raise InvalidMessage(f"{type_.__name__} is wrong at {misfit.path}: {misfit.why}") from None
    except RecursionError:
        raise InvalidMessage(f"{type_.__name__} is nested too deeply") from None
    except (DecodeError, UnicodeDecodeError) as error:
        raise InvalidMessage(f"{type_.__name__} is not valid JSON: {error}") from error


def encode(value: object) -> bytes:
    """The JSON of a struct; an `Unknown` inside it comes out as it came in.

    Text with a lone surrogate is not Unicode and raises `UnicodeEncodeError`.
    """
    return _encoder.encode(value)


def _as_received(value: object) -> Raw:
    if isinstance(value, Unknown):
        return Raw(value.raw)
    raise NotImplementedError(f"a {type(value).__name__} cannot be sent")


_encoder = msgspec.json.Encoder(enc_hook=_as_received)
