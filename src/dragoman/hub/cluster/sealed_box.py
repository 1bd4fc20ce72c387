"""Seals data that passes through the store, so that only one process can read it.

A box is sealed to a key whose secret half never leaves the memory of the process that made it: when
that process ends, nobody can open the box, whatever is left of it on a disk. The scheme is
DHIES: a fresh Diffie-Hellman exchange for each box in the group ffdhe3072 of RFC 7919, SHAKE-256 of
the shared number as a one-time pad, and HMAC-SHA-256 over the result. It protects what rests
against readers; anyone who can write to the store is trusted, as with every other command there.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

PRIME = int(
    "FFFFFFFFFFFFFFFFADF85458A2BB4A9AAFDC5620273D3CF1D8B9C583CE2D3695A9E13641146433FB"
    "CC939DCE249B3EF97D2FE363630C75D8F681B202AEC4617AD3DF1ED5D5FD65612433F51F5F066ED0"
    "856365553DED1AF3B557135E7F57C935984F0C70E0E68B77E2A689DAF3EFE8721DF158A136ADE735"
    "30ACCA4F483A797ABC0AB182B324FB61D108A94BB2C8E3FBB96ADAB760D7F4681D4F42A3DE394DF4"
    "AE56EDE76372BB190B07A7C8EE0A6D709E02FCE1CDF7E2ECC03404CD28342F619172FE9CE98583FF"
    "8E4F1232EEF28183C3FE3B1B4C6FAD733BB5FCBC2EC22005C58EF1837D1683B2C6F34A26C1B2EFFA"
    "886B4238611FCFDCDE355B3B6519035BBC34F4DEF99C023861B46FC9D6E6C9077AD91D2691F7F7EE"
    "598CB0FAC186D91CAEFE130985139270B4130C93BC437944F4FD4452E2D74DD364F2E21E71F54BFF"
    "5CAE82AB9C9DF69EE86D2BC522363A0DABC521979B0DEADA1DBF9A42D5C4484E0ABCD06BFA53DDEF"
    "3C1B20EE3FD59D7C25E41D2B66C62E37FFFFFFFFFFFFFFFF",
    16,
)
_GENERATOR = 2
_SECRET_BITS = 384
_SIZE = 384
_TAG = _MAC_KEY = 32
_BLOCK = 256
"""Of which a box is a multiple, so that it does not tell the length of what was typed."""


class Key:
    """A key of this process. Its `public` half is for processes that seal something for it."""

    def __init__(self) -> None:
        self._secret = secrets.randbits(_SECRET_BITS)
        self._own = _number(pow(_GENERATOR, self._secret, PRIME))
        self.public = self._own.hex()

    def opened(self, box: bytes) -> bytes:
        """What was sealed, and spaces behind it. Raises ValueError for what it does not open."""
        theirs, tag, text = box[:_SIZE], box[_SIZE : _SIZE + _TAG], box[_SIZE + _TAG :]
        shared = pow(_checked(theirs), self._secret, PRIME)
        mac_key, pad = _derived(shared, theirs, self._own, len(text))
        if not hmac.compare_digest(tag, _tag(mac_key, text)):
            raise ValueError("the box is sealed with another key, or damaged")
        return _xor(text, pad)


def sealed(plain: bytes, public: str) -> bytes:
    """A box that only the process with this key opens. Raises ValueError for an invalid key."""
    theirs = bytes.fromhex(public)
    secret = secrets.randbits(_SECRET_BITS)
    ours, shared = (pow(base, secret, PRIME) for base in (_GENERATOR, _checked(theirs)))
    plain += b" " * (-len(plain) % _BLOCK)
    mac_key, pad = _derived(shared, _number(ours), theirs, len(plain))
    text = _xor(plain, pad)
    return _number(ours) + _tag(mac_key, text) + text


def _derived(shared: int, sender: bytes, receiver: bytes, size: int) -> tuple[bytes, bytes]:
    """A key for the tag and a pad, each for this box alone."""
    context = b"dragoman sealed command" + sender + receiver + _number(shared)
    stream = hashlib.shake_256(context).digest(_MAC_KEY + size)
    return stream[:_MAC_KEY], stream[_MAC_KEY:]


def _tag(mac_key: bytes, text: bytes) -> bytes:
    return hmac.digest(mac_key, text, "sha256")


def _checked(number: bytes) -> int:
    value = int.from_bytes(number)
    if len(number) != _SIZE or not 1 < value < PRIME - 1:
        raise ValueError("not a public key")
    return value


def _number(value: int) -> bytes:
    return value.to_bytes(_SIZE)


def _xor(text: bytes, pad: bytes) -> bytes:
    return (int.from_bytes(text) ^ int.from_bytes(pad)).to_bytes(len(text))
