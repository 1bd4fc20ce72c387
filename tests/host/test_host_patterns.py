"""The hosts that a fence lets through, as people write them, and how programs may spell them."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from dragoman.host.fence.network.host_patterns import (
    is_public,
    read_host,
    read_pattern,
    read_patterns,
)


@pytest.mark.parametrize(
    ("pattern", "host", "port", "fits"),
    [
        ("example.com", "example.com", 443, True),
        ("example.com", "example.com", 80, True),
        ("example.com", "example.com", 22, False),
        ("Example.COM.:8443", "example.com", 8443, True),
        ("example.com:8443", "example.com", 443, False),
        ("example.com:*", "example.com", 22, True),
        ("example.com", "www.example.com", 443, False),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "badexample.com", 443, False),
        ("*", "anything.org", 443, True),
        ("*", "anything.org", 25, False),
    ],
)
def test_a_pattern_is_a_name_with_ports(pattern: str, host: str, port: int, fits: bool) -> None:
    assert read_pattern(pattern).has_name(host, port) is fits


@pytest.mark.parametrize(
    ("pattern", "address", "port", "fits"),
    [
        ("10.0.0.0/8:443", "10.9.9.9", 443, True),
        ("10.0.0.0/8:443", "11.0.0.1", 443, False),
        ("127.0.0.1:8080", "127.0.0.1", 8080, True),
        ("127.0.0.1:8080", "127.0.0.1", 8081, False),
        ("localhost:8080", "::1", 8080, True),
        ("[::1]:8080", "::1", 8080, True),
        ("2001:db8::1", "2001:db8::1", 443, True),
        ("[2001:db8::/32]:22", "2001:db8::1", 22, True),
        ("*", "93.184.216.34", 443, False),
    ],
)
def test_a_pattern_may_be_addresses(pattern: str, address: str, port: int, fits: bool) -> None:
    assert read_pattern(pattern).has_address(ip_address(address), port) is fits


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("https://example.com", "a host such as example.com:443, not the address"),
        ("user@example.com", "not the address"),
        ("", "a host, as in"),
        ("exa mple.com", "a host, as in"),
        ("*example.com", "a host, as in"),
        ("example.*", "a host, as in"),
        ("*.*.com", "a host, as in"),
        ("0x7f.1:80", "a host, as in"),
        ("example.com:0", "a port from 1 to 65535"),
        ("example.com:65536", "a port from 1 to 65535"),
        ("example.com:http", "a port from 1 to 65535"),
        ("localhost", "a port after this machine's own address"),
        ("127.0.0.1:*", "a port after this machine's own address"),
        ("10.0.0.1/8", "a host, as in"),
    ],
)
def test_a_host_that_cannot_be_read_is_named(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_patterns([text])


def test_the_list_has_a_limit() -> None:
    with pytest.raises(ValueError, match="at most 200 hosts, not 201"):
        read_patterns(["example.com"] * 201)
    with pytest.raises(ValueError, match="at most 32 ports of this machine"):
        read_patterns([f"localhost:{port}" for port in range(1, 40)])


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("EXAMPLE.com.", "example.com"),
        ("127.1", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("[::ffff:127.0.0.1]", "127.0.0.1"),
        ("[::1]", "::1"),
    ],
)
def test_every_spelling_of_a_host_is_the_same_host(text: str, meant: str) -> None:
    assert str(read_host(text)) == meant


@pytest.mark.parametrize("text", ["", "a b", "a/b", "1.2.3.4.5", "ex%41mple.com", "[fe80::1%lo]"])
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        read_host(text)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("127.0.0.1", False),
        ("10.0.0.1", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::", False),
        ("::1", False),
        ("fe80::1", False),
        ("fc00::1", False),
        ("fec0::1", False),
        ("ff02::1", False),
        ("::127.0.0.1", False),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b:1:7f00:0:100::", False),
        ("2002:7f00:1::", False),
    ],
)
def test_what_is_on_the_internet(address: str, public: bool) -> None:
    assert is_public(ip_address(address)) is public
