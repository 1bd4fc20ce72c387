"""The key with which this server signs its pushes (VAPID, RFC 8292); made once, kept private."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from dragoman.data_directory import make_private, private_file
from dragoman.errors import ConfigError
from dragoman.notices.push.message_encryption import point_of, to_base64

FILE_NAME = "push-key.pem"
_SECONDS = 12 * 3600
"""How long a signature is valid; services allow a day."""


class ServerKey:
    """Browsers subscribe to pushes of this key alone."""

    def __init__(self, private: ec.EllipticCurvePrivateKey) -> None:
        self._private = private
        self.public = to_base64(point_of(private.public_key()))

    def authorization(self, endpoint: str, contact: str, now: float | None = None) -> str:
        """The header of a push to this endpoint; `contact` is whom its service may write to."""
        parts = urlsplit(endpoint)
        claims = {
            "aud": f"{parts.scheme}://{parts.netloc}",
            "exp": int((time.time() if now is None else now) + _SECONDS),
            "sub": contact,
        }
        signed = f"{_part({'typ': 'JWT', 'alg': 'ES256'})}.{_part(claims)}"
        signature = self._private.sign(signed.encode(), ec.ECDSA(SHA256()))
        numbers = (number.to_bytes(32, "big") for number in decode_dss_signature(signature))
        return f"vapid t={signed}.{to_base64(b''.join(numbers))}, k={self.public}"


def _part(value: Mapping[str, object]) -> str:
    return to_base64(json.dumps(value, separators=(",", ":")).encode())


def server_key(directory: Path) -> ServerKey:
    """That of a data directory, the same at every start. Raises ConfigError when it is unusable."""
    path = directory / FILE_NAME
    with suppress(FileExistsError):
        if not path.exists():
            _make(path)
    try:
        private = load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(str(path), "", "a readable private key; delete it for a new one") from (
            error
        )
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise ConfigError(str(path), "", "a private key of P-256; delete it for a new one")
    return ServerKey(private)


def _make(path: Path) -> None:
    """Raises FileExistsError when another process was first."""
    make_private(path.parent)
    private = ec.generate_private_key(ec.SECP256R1())
    text = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    fresh = path.with_name(f"{path.name}.{os.urandom(8).hex()}")
    try:
        with open(fresh, "wb", opener=private_file) as file:
            file.write(text)
        os.link(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
