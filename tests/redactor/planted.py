"""Secrets that nobody has: of the shapes that real ones have, drawn at random."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

_HEX = "0123456789abcdef"
_WORD = ascii_letters + digits


def _draw(of: random.Random, characters: str, count: int) -> str:
    return "".join(of.choices(characters, k=count))


def _jwt(of: random.Random) -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    said = json.dumps({"sub": _draw(of, digits, 8)}).encode()
    body = base64.urlsafe_b64encode(said).decode().rstrip("=")
    return f"{head}.{body}.{_draw(of, _WORD, 43)}"


SHAPES: dict[str, Callable[[random.Random], str]] = {
    "AWS": lambda of: "AKIA" + _draw(of, ascii_uppercase + digits, 16),
    "GitHub": lambda of: "ghp_" + _draw(of, _WORD, 36),
    "GitHub, fine-grained": lambda of: f"github_pat_{_draw(of, _WORD, 22)}_{_draw(of, _WORD, 59)}",
    "GitLab": lambda of: "glpat-" + _draw(of, _WORD, 20),
    "Anthropic": lambda of: "sk-ant-api03-" + _draw(of, _WORD + "-_", 93) + "AA",
    "OpenAI": lambda of: "sk-proj-" + _draw(of, _WORD, 48),
    "Google": lambda of: "AIza" + _draw(of, _WORD + "-_", 34) + "Q",
    "Slack": lambda of: (
        f"xoxb-{_draw(of, digits, 12)}-{_draw(of, digits, 12)}-{_draw(of, _WORD, 24)}"
    ),
    "Slack webhook": lambda of: (
        f"https://hooks.slack.com/services/T{_draw(of, ascii_uppercase, 8)}/B"
        f"{_draw(of, ascii_uppercase, 8)}/{_draw(of, _WORD, 24)}"
    ),
    "Stripe": lambda of: "sk_live_" + _draw(of, _WORD, 24),
    "SendGrid": lambda of: f"SG.{_draw(of, _WORD, 22)}.{_draw(of, _WORD, 43)}",
    "npm": lambda of: "npm_" + _draw(of, _WORD, 36),
    "PyPI": lambda of: "pypi-AgEIcHlwaS5vcmc" + _draw(of, _WORD + "-_", 149) + "A",
    "Hugging Face": lambda of: "hf_" + _draw(of, ascii_letters, 34),
    "DigitalOcean": lambda of: "dop_v1_" + _draw(of, _HEX, 64),
    "Vault": lambda of: "hvs." + _draw(of, _WORD, 90),
    "JSON Web Token": _jwt,
    "Telegram": lambda of: f"{_draw(of, digits, 10)}:AA{_draw(of, _WORD, 33)}",
    "private key": lambda of: (
        "-----BEGIN RSA PRIVATE KEY-----\n"
        + "\n".join(_draw(of, _WORD + "+/", 64) for _ in range(6))
        + "\n-----END RSA PRIVATE KEY-----"
    ),
    "random": lambda of: _draw(of, _WORD, 40),
    "password": lambda of: _draw(of, ascii_lowercase, 6) + _draw(of, digits, 4),
}

PLACES: tuple[Callable[[str], str], ...] = (
    lambda secret: f"The value is {secret} as far as I can see.",
    lambda secret: f"export SERVICE_TOKEN={secret}\nmake deploy\n",
    lambda secret: json.dumps({"region": "eu", "apiKey": secret}),
    lambda secret: f"config:\n  password: '{secret}'\n",
    lambda secret: f"curl -H 'Authorization: Bearer {secret}' https://example.org/v1",
)
"""Texts in which a secret may be. Of a password nothing but the place can tell that it is one."""


def text_with(shape: str, secret: str, of: random.Random) -> str:
    return of.choice(PLACES[1:4] if shape == "password" else PLACES)(secret)


def pieces(text: str, of: random.Random) -> list[str]:
    """The text as an agent says it: a few characters at a time."""
    cut: list[str] = []
    while text:
        size = of.randint(1, 12)
        cut.append(text[:size])
        text = text[size:]
    return cut
