"""A push can be read by the browser it is for, as RFC 8291 says, and by nobody else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from support.push_stub import Browser, Pushed, b64, unb64

from dragoman import ConfigError
from dragoman.notices.push.message_encryption import MOST_BYTES, encrypted
from dragoman.notices.push.push_service import is_allowed
from dragoman.notices.push.server_key import FILE_NAME, server_key

# The example in section 5 of RFC 8291.
PRIVATE = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
SECRET = "BTBZMqHH6r4Tts7J_aSIgg"
BODY = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS"
    "6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qu"
    "lcy4a-fN"
)


def test_the_browser_of_these_tests_reads_the_example_of_the_rfc() -> None:
    number = int.from_bytes(unb64(PRIVATE), "big")
    browser = Browser(ec.derive_private_key(number, ec.SECP256R1()), unb64(SECRET))
    assert browser.read(unb64(BODY)) == b"When I grow up, I want to be a watermelon"


@pytest.mark.parametrize("length", [0, 1, 511, 512, 513, MOST_BYTES - 1, MOST_BYTES])
def test_a_message_of_any_length_is_read_and_its_length_is_hidden(length: int) -> None:
    browser, message = Browser(), os.urandom(length).replace(b"\0", b"x")
    keys = [unb64(browser.keys[name]) for name in ("key", "secret")]
    body = encrypted(message, *keys)
    assert browser.read(body) == message
    assert len(body) in {len(encrypted(bytes([120]) * n, *keys)) for n in (0, 512, MOST_BYTES)} or (
        (len(body) - len(encrypted(b"", *keys))) % 512 == 0
    )
    for other in (Browser(), Browser(browser.private), Browser(secret=browser.secret)):
        with pytest.raises(InvalidTag):
            other.read(body)


def test_no_two_messages_look_alike() -> None:
    browser = Browser()
    keys = [unb64(browser.keys[name]) for name in ("key", "secret")]
    assert len({encrypted(b"the same", *keys)[:100] for _ in range(20)}) == 20


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        (b"", bytes(16)),
        (bytes(65), bytes(16)),
        (b"\x04" + bytes(64), bytes(16)),
        (b"\x04" + b"\xff" * 64, bytes(16)),
        (unb64(Browser().keys["key"]), bytes(15)),
        (unb64(Browser().keys["key"])[:-1], bytes(16)),
    ],
    ids=["none", "zeros", "no point", "off the curve", "short secret", "short key"],
)
def test_keys_that_no_browser_has_are_refused(key: bytes, secret: bytes) -> None:
    with pytest.raises(ValueError, match="subscription"):
        encrypted(b"message", key, secret)


def test_a_message_that_is_too_long_is_refused() -> None:
    browser = Browser()
    keys = [unb64(browser.keys[name]) for name in ("key", "secret")]
    with pytest.raises(ValueError, match="at most"):
        encrypted(bytes(MOST_BYTES + 1), *keys)


def test_the_key_of_a_server_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    first, again = server_key(tmp_path / "data"), server_key(tmp_path / "data")
    assert first.public == again.public
    assert (tmp_path / "data" / FILE_NAME).stat().st_mode & 0o077 == 0
    assert [each.name for each in (tmp_path / "data").iterdir()] == [FILE_NAME]
    assert server_key(tmp_path / "other").public != first.public


def test_a_key_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("not a key")
    with pytest.raises(ConfigError, match="delete it for a new one"):
        server_key(tmp_path)


def test_a_signature_is_for_one_service_and_a_limited_time(tmp_path: Path) -> None:
    key = server_key(tmp_path)
    said = key.authorization("https://push.example:8443/a/b?c", "mailto:me@example.com", now=1000)
    claims = Pushed("/", {"authorization": said}, b"", 0).claims()
    assert claims == {
        "aud": "https://push.example:8443",
        "exp": 1000 + 12 * 3600,
        "sub": "mailto:me@example.com",
        "k": key.public,
    }
    head, body, signature = said.removeprefix("vapid t=").split(", k=")[0].split(".")
    other = b64(json.dumps({**json.loads(unb64(body)), "aud": "https://evil.example"}).encode())
    forged = f"vapid t={head}.{other}.{signature}, k={key.public}"
    with pytest.raises(InvalidSignature):
        Pushed("/", {"authorization": forged}, b"", 0).claims()


@pytest.mark.parametrize(
    ("endpoint", "allowed"),
    [
        ("https://fcm.googleapis.com/fcm/send/abc", True),
        ("https://updates.push.services.mozilla.com/wpush/v2/abc", True),
        ("https://web.push.apple.com/abc", True),
        ("https://wns2-par02p.notify.windows.com/w/?token=abc", True),
        ("https://push.mine.example/abc", True),
        ("http://127.0.0.1:9/abc", True),
        ("http://fcm.googleapis.com/fcm/send/abc", False),
        ("https://fcm.googleapis.com:8443/abc", False),
        ("https://fcm.googleapis.com@evil.example/abc", False),
        ("https://fcm.googleapis.com.evil.example/abc", False),
        ("https://evilpush.apple.com.example/abc", False),
        ("https://push.apple.com.evil/abc", False),
        ("http://127.0.0.1:8080/abc", False),
        ("https://169.254.169.254/latest/meta-data", False),
        ("https://localhost/abc", False),
        ("file:///etc/passwd", False),
        ("", False),
    ],
)
def test_only_services_that_are_known_or_named_are_sent_to(endpoint: str, *, allowed: bool) -> None:
    named = ("https://push.mine.example", "http://127.0.0.1:9")
    assert is_allowed(endpoint, named) is allowed
