"""Encrypts a message for one browser (RFC 8291, over RFC 8188 and RFC 5869).

The push service that carries it sees neither its content nor, since all are padded, its length.
"""

from __future__ import annotations

import os
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_RECORD_BYTES = 4096
"""Every service takes so many; the message is one record."""
_SALT, _POINT, _SECRET, _TAG = 16, 65, 16, 16
_HEADER = _SALT + 4 + 1 + _POINT
_LAST = b"\x02"
MOST_BYTES = _RECORD_BYTES - _HEADER - _TAG - len(_LAST)
_STEP = 512
"""Messages are padded to multiples of this."""


def encrypted(message: bytes, public_key: bytes, secret: bytes) -> bytes:
    """The body of a push for the browser with this key and secret. Raises ValueError for a message
    that is too long, or keys that no browser has."""
    if len(message) > MOST_BYTES:
        raise ValueError(f"a push holds at most {MOST_BYTES} bytes, not {len(message)}")
    theirs = checked_keys(public_key, secret)
    ours = ec.generate_private_key(ec.SECP256R1())
    our_point = point_of(ours.public_key())
    shared = ours.exchange(ec.ECDH(), theirs)
    about = b"WebPush: info\0" + public_key + our_point
    salt = os.urandom(_SALT)
    input_key = _derived(shared, secret, about, 32)
    key = _derived(input_key, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(input_key, salt, b"Content-Encoding: nonce\0", 12)
    padding = min(-len(message) % _STEP, MOST_BYTES - len(message))
    sealed = AESGCM(key).encrypt(nonce, message + _LAST + bytes(padding), None)
    return salt + struct.pack("!IB", _RECORD_BYTES, _POINT) + our_point + sealed


def checked_keys(public_key: bytes, secret: bytes) -> ec.EllipticCurvePublicKey:
    """Raises ValueError unless they are a browser's."""
    if len(secret) != _SECRET:
        raise ValueError(f"the secret of a subscription has {_SECRET} bytes, not {len(secret)}")
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), public_key)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError("the key of a subscription must be a point of P-256") from error


def point_of(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _derived(key: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt, info).derive(key)


def to_base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def from_base64(text: str) -> bytes:
    """Raises ValueError."""
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
