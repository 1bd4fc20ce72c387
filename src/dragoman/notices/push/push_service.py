"""Sends messages to the push services of browsers.

A service is not believed: it is one of those that browsers use, or one that the settings name, so
that nobody with a token can have this machine send requests to others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from urllib.parse import urlsplit

import httpx

from dragoman.notices.push.message_encryption import encrypted, from_base64, to_base64
from dragoman.notices.push.server_key import ServerKey
from dragoman.notices.push.subscriptions import Subscription
from dragoman.notices.retried_delivery import Attempt, TryOutcome, retry_after

KNOWN_SERVICES = (
    "fcm.googleapis.com",
    "updates.push.services.mozilla.com",
    "*.push.apple.com",
    "*.notify.windows.com",
)
CONTACT = "mailto:nobody@example.com"
_KEEP_SECONDS = 24 * 3600
"""How long a service keeps a message for a device that is off."""


def is_allowed(endpoint: str, services: Collection[str]) -> bool:
    """Whether it is of a known service over HTTPS, or of an origin that the settings name."""
    parts = urlsplit(endpoint)
    if f"{parts.scheme}://{parts.netloc}" in services:
        return True
    if parts.scheme != "https" or "@" in parts.netloc or parts.port not in (None, 443):
        return False
    host = parts.hostname or ""
    return any(_is(host, pattern) for pattern in KNOWN_SERVICES)


def _is(host: str, pattern: str) -> bool:
    return host.endswith(pattern[1:]) if pattern.startswith("*") else host == pattern


class PushAttempt(Attempt):
    """One message for one browser. Of messages with the same `topic` that wait for a device which
    is off, its service delivers the last."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        key: ServerKey,
        contact: str,
        subscription: Subscription,
        message: bytes,
        topic: str,
    ) -> None:
        self._client = client
        self._key = key
        self._contact = contact
        self._subscription = subscription
        self._message = message
        self._topic = to_base64(hashlib.sha256(topic.encode()).digest())[:32]

    async def __call__(self) -> TryOutcome:
        to = self._subscription
        body = encrypted(self._message, from_base64(to.key), from_base64(to.secret))
        headers = {
            "authorization": self._key.authorization(to.endpoint, self._contact),
            "content-encoding": "aes128gcm",
            "content-type": "application/octet-stream",
            "ttl": str(_KEEP_SECONDS),
            "topic": self._topic,
            "urgency": "high",
        }
        try:
            answer = await self._client.post(to.endpoint, content=body, headers=headers)
        except httpx.HTTPError as error:
            return TryOutcome("again", type(error).__name__)
        if answer.is_success:
            return TryOutcome("done")
        if answer.status_code in (404, 410):
            return TryOutcome("gone")
        return retry_after(answer)
