"""Sends notices to an address of the user's, signed so that the receiver can check the sender.

The header `Dragoman-Signature` is `t=SECONDS,v1=HEX`: the HMAC-SHA256, with the shared secret, of
the seconds, a dot and the body. A receiver refuses old times; a notice that is sent again has the
same id and a new time.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from pathlib import Path

import httpx
import msgspec

from dragoman.agents.settings.notice_settings import LEAST_SECRET, WebhookSettings
from dragoman.notices.notice import Alert
from dragoman.notices.retried_delivery import Attempt, TryOutcome, retry_after

SIGNATURE = "dragoman-signature"


class WebhookAttempt(Attempt):
    def __init__(self, client: httpx.AsyncClient, to: WebhookSettings, notice: Alert) -> None:
        self._client = client
        self._to = to
        self._notice = notice

    async def __call__(self) -> TryOutcome:
        try:
            secret = secret_in(self._to.secret_file)
        except (OSError, ValueError) as error:
            return TryOutcome("refused", f"{self._to.secret_file}: {error}")
        body = msgspec.json.encode(self._notice.public(content=self._to.content))
        headers = {
            "content-type": "application/json",
            "dragoman-id": self._notice.key,
            SIGNATURE: signature(secret, body, int(time.time())),
        }
        try:
            answer = await self._client.post(self._to.url, content=body, headers=headers)
        except httpx.HTTPError as error:
            return TryOutcome("again", type(error).__name__)
        return TryOutcome("done") if answer.is_success else retry_after(answer)


def signature(secret: bytes, body: bytes, seconds: int) -> str:
    made = hmac.new(secret, b"%d." % seconds + body, hashlib.sha256)
    return f"t={seconds},v1={made.hexdigest()}"


def secret_in(path: str) -> bytes:
    """Raises OSError, and ValueError for one that is too short."""
    secret = Path(path).read_bytes().strip()
    if len(secret) < LEAST_SECRET:
        raise ValueError(f"a secret of at least {LEAST_SECRET} bytes")
    return secret
