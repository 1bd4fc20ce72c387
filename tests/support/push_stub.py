"""A push service on loopback, and browsers that read what it was sent, as RFC 8291 says."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import struct
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _point(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


@dataclass
class Browser:
    """One that subscribed: its keys, and how it reads a message."""

    private: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    secret: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def keys(self) -> dict[str, str]:
        return {"key": b64(_point(self.private)), "secret": b64(self.secret)}

    def read(self, body: bytes) -> bytes:
        """Raises where it is not for this browser, or not as the RFCs say."""
        salt, (size, length) = body[:16], struct.unpack("!IB", body[16:21])
        sender, sealed = body[21 : 21 + length], body[21 + length :]
        assert len(body) <= size == 4096
        theirs = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
        shared = self.private.exchange(ec.ECDH(), theirs)
        info = b"WebPush: info\x00" + _point(self.private) + sender
        input_key = HKDF(SHA256(), 32, self.secret, info).derive(shared)
        # Step by step, not as the sender does it.
        pseudorandom = HKDF.extract(SHA256(), salt, input_key)
        key = HKDFExpand(SHA256(), 16, b"Content-Encoding: aes128gcm\x00").derive(pseudorandom)
        nonce = HKDFExpand(SHA256(), 12, b"Content-Encoding: nonce\x00").derive(pseudorandom)
        padded = AESGCM(key).decrypt(nonce, sealed, None).rstrip(b"\x00")
        assert padded[-1:] == b"\x02"
        return padded[:-1]


@dataclass
class Pushed:
    """A request that the service received."""

    path: str
    headers: dict[str, str]
    body: bytes
    at: float

    def claims(self) -> dict[str, Any]:
        """Those of the signature (RFC 8292), which must be that of the key beside it."""
        token, key = self.headers["authorization"].removeprefix("vapid t=").split(", k=")
        signed, _, signature = token.rpartition(".")
        raw = unb64(signature)
        numbers = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), unb64(key))
        public.verify(encode_dss_signature(*numbers), signed.encode(), ec.ECDSA(SHA256()))
        head, claims = (json.loads(unb64(part)) for part in signed.split("."))
        assert head == {"typ": "JWT", "alg": "ES256"}
        return {**claims, "k": key}


@dataclass
class PushStub:
    origin: str = ""
    came: list[Pushed] = field(default_factory=list[Pushed])
    answers: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """A status and more headers for each of the next requests; then 201."""

    def subscription(self, browser: Browser, name: str = "one", **fields: Any) -> dict[str, Any]:
        return {"endpoint": f"{self.origin}/push/{name}", **browser.keys, **fields}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                lines = (line.partition(":") for line in head[1:] if line)
                headers = {name.lower(): value.strip() for name, _, value in lines}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                path = head[0].split(" ")[1]
                self.came.append(Pushed(path, headers, body, time.time()))
                status, more = self.answers.pop(0) if self.answers else (201, "")
                writer.write(f"HTTP/1.1 {status} X\r\n{more}content-length: 0\r\n\r\n".encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def push_stub() -> AsyncGenerator[PushStub]:
    stub = PushStub()
    listening = await asyncio.start_server(stub.serve, "127.0.0.1", 0)
    stub.origin = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield stub
    finally:
        listening.close()
