"""The token and the names: what is taken, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.errors import ConfigError
from dragoman.web.server.guard import AllowedHosts, is_loopback
from dragoman.web.server.http_server import kept_token, new_token


def test_a_token_has_256_bits_and_is_never_the_same() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(token) == 43 for token in tokens)


def test_a_kept_token_is_private_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "token"
    token = kept_token(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert kept_token(path) == token


@pytest.mark.parametrize("content", ["", "short", "x" * 31, "spaces in the middle of a token xxxx"])
def test_a_file_without_a_token_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text(content)
    with pytest.raises(ConfigError, match="a token"):
        kept_token(path)


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(new_token())
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="only you can read"):
        kept_token(path)


def test_a_place_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a writable token file"):
        kept_token(tmp_path / "none" / "token")


@pytest.mark.parametrize(
    ("bound", "header", "expected"),
    [
        ("127.0.0.1", "127.0.0.1:8080", True),
        ("127.0.0.1", "localhost:8080", True),
        ("127.0.0.1", "LOCALHOST:8080", True),
        ("127.0.0.1", "[::1]:8080", True),
        ("127.0.0.1", "localhost", False),
        ("127.0.0.1", "localhost.:8080", False),
        ("127.0.0.1", "192.168.0.1:8080", False),
        ("127.0.0.1", "localhost:8080.evil.example", False),
        ("127.0.0.1", "evil.example:8080", False),
        ("127.0.0.1", "user@localhost:8080", False),
        ("127.0.0.1", "", False),
        ("192.168.0.1", "192.168.0.1:8080", True),
        ("192.168.0.1", "192.168.0.2:8080", False),
        ("0.0.0.0", "192.168.0.2:8080", True),
        ("0.0.0.0", "[fe80::1]:8080", True),
        ("0.0.0.0", "evil.example:8080", False),
        ("::1", "[::1]:8080", True),
    ],
)
def test_which_names_are_ours(bound: str, header: str, expected: bool) -> None:
    assert AllowedHosts(bound, 8080).has(header) is expected


def test_the_port_of_http_needs_not_be_named() -> None:
    assert AllowedHosts("127.0.0.1", 80).has("localhost")


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.1", False),
        ("no such host", False),
    ],
)
def test_what_only_this_machine_can_reach(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
