"""What every response says to a browser, whatever it carries. Pure data."""

from __future__ import annotations

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data: blob:; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'"
)

SECURITY_HEADERS = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    (b"cache-control", b"no-store"),
)


def secured(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """These headers and those that are missing; only how long to keep it may a response say."""
    own = [(name, value) for name, value in headers if name.lower() not in _OURS]
    said = {name.lower() for name, _ in own}
    return own + [(name, value) for name, value in SECURITY_HEADERS if name not in said]


_OURS = {name for name, _ in SECURITY_HEADERS} - {b"cache-control"}
