"""The kinds of secrets that are recognised, and by what: one line each. Pure.

A kind is found by its own shape, or by the words before it. What has neither may still be found by
its randomness.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from dragoman.lazy_pattern import lazy_pattern


class SecretKind(NamedTuple):
    """The group `secret` of the pattern is what is removed, or all of it if there is none. A text
    that has none of `hints` need not be searched: that is ten times faster."""

    name: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...] = ()


class Span(NamedTuple):
    """Where a secret is in a text."""

    start: int
    end: int
    kind: str


# Before and after a token: no character that could be part of it.
_B, _E = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"


def _token(name: str, shape: str, *hints: str) -> SecretKind:
    return SecretKind(name, lazy_pattern(f"{_B}{shape}{_E}"), hints)


_SECRETIVE = (
    r"pass(?:word|wd|phrase|code)|pwd|secret|token|api[_-]?key|access[_-]?key|account[_-]?key"
    r"|private[_-]?key|signing[_-]?key|encryption[_-]?key|credentials?|auth(?:orization)?[_-]?key"
)
KINDS = (
    SecretKind(
        "private key",
        lazy_pattern(
            r"-----BEGIN (?P<of>[A-Z0-9 ]{0,30})PRIVATE KEY(?: BLOCK)?-----"
            r"(?:[^-]|-(?!----END)){0,16000}(?:-----END (?P=of)PRIVATE KEY(?: BLOCK)?-----)?"
        ),
        ("PRIVATE KEY",),
    ),
    _token(
        "AWS access key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}", "AKIA", "ASIA", "ABIA", "ACCA"
    ),
    _token(
        "GitHub token", r"gh[pousr]_[A-Za-z0-9]{30,255}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"
    ),
    _token("GitHub token", r"github_pat_[A-Za-z0-9_]{50,255}", "github_pat_"),
    _token("GitLab token", r"gl(?:pat|ptt|dt|rt|cbt|soat|ft|agent)-[A-Za-z0-9_.-]{20,300}", "gl"),
    _token("Anthropic key", r"sk-ant-[A-Za-z0-9_-]{20,300}", "sk-ant-"),
    _token("OpenAI key", r"sk-(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,300}", "sk-"),
    _token("Google key", r"AIza[A-Za-z0-9_-]{35}", "AIza"),
    _token("Google secret", r"GOCSPX-[A-Za-z0-9_-]{20,60}", "GOCSPX-"),
    _token("Google token", r"ya29\.[A-Za-z0-9_-]{20,2000}", "ya29."),
    _token("Slack token", r"xox[abeoprs](?:-[0-9A-Za-z]+){2,8}", "xox"),
    _token("Slack token", r"xapp-\d-[A-Z0-9]+-\d+-[a-f0-9]{30,100}", "xapp-"),
    SecretKind(
        "webhook",
        lazy_pattern(
            r"https://(?:hooks\.slack\.com/(?:services|workflows)"
            r"|(?:\w+\.)?discord(?:app)?\.com/api/webhooks|\w+\.webhook\.office\.com/webhookb2)"
            r"/(?P<secret>[A-Za-z0-9_/@.-]{20,300})"
        ),
        ("hooks.slack.com", "/api/webhooks/", "webhook.office.com"),
    ),
    _token(
        "Stripe key", r"(?:sk|rk|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,250}", "sk_", "rk_", "whsec_"
    ),
    _token("SendGrid key", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,64}", "SG."),
    _token("Twilio key", r"(?:SK|AC)[0-9a-f]{32}"),
    _token("npm token", r"npm_[A-Za-z0-9]{36}", "npm_"),
    _token("PyPI token", r"pypi-AgE[A-Za-z0-9_-]{50,1000}", "pypi-"),
    _token("Hugging Face token", r"hf_[A-Za-z0-9]{30,60}", "hf_"),
    _token("DigitalOcean token", r"do[opr]_v1_[a-f0-9]{64}", "_v1_"),
    _token("Docker token", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,60}", "dckr_"),
    _token("Vault token", r"hv[sbr]\.[A-Za-z0-9_-]{20,300}", "hvs.", "hvb.", "hvr."),
    _token("Databricks token", r"dapi[a-f0-9]{32}(?:-\d)?", "dapi"),
    _token("Linear key", r"lin_(?:api|oauth)_[A-Za-z0-9]{30,60}", "lin_"),
    _token("Shopify token", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}", "shp"),
    _token("Mailgun key", r"key-[a-f0-9]{32}", "key-"),
    _token("Telegram token", r"\d{8,10}:AA[A-Za-z0-9_-]{32,34}", ":AA"),
    _token("Discord token", r"[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}"),
    _token("age key", r"AGE-SECRET-KEY-1[A-Z0-9]{50,60}", "AGE-SECRET"),
    _token(
        "JSON Web Token", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{10,}", "eyJ"
    ),
    SecretKind(
        "password in an address",
        lazy_pattern(
            r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@'\"<>]{0,100}:(?P<secret>[^\s/@'\"<>]{3,200})@"
        ),
    ),
    SecretKind(
        "authorization header",
        lazy_pattern(
            r"(?i)\b(?:authorization|x-api-key|x-auth-token|cookie|set-cookie)[\"']?\s*[:=]\s*[\"']?"
            r"(?:(?:bearer|basic|token|digest)\s+)?(?P<secret>[A-Za-z0-9._~+/=;%-][^\s\"',\\{}()]{7,4000})"
        ),
    ),
    SecretKind(
        "bearer token", lazy_pattern(r"(?i)\bbearer\s+(?P<secret>[A-Za-z0-9._~+/-]{16,4000}=*)")
    ),
    SecretKind(
        "password",
        # NAME=value, as in a file of variables or in a shell line
        lazy_pattern(
            r"(?P<name>(?:PASSWORD|PASSWD|PASSPHRASE|PWD|SECRET|TOKEN|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?)"
            r"[A-Z0-9_]{0,20})\s?=\s?(?P<secret>[^\s\"'`$<>(){},;\\]{6,4000})"
        ),
    ),
    SecretKind(
        "password",
        # name: "value", as in JSON, YAML and programs
        lazy_pattern(
            rf"(?i)(?P<name>(?:{_SECRETIVE})[A-Za-z0-9_]{{0,20}})\\?[\"']?\s?(?:[:=]|=>|:=)\s?\\?[\"']"
            r"(?P<secret>[^\s\"'\\$<>{}]{6,4000})\\?[\"']"
        ),
    ),
    SecretKind(
        "password",
        # password: value, as in YAML and in what programs print
        lazy_pattern(
            r"(?im)(?P<name>password|passwd|passphrase|secret|token|api[_-]?key)"
            r"[ \t]*[:=][ \t]*(?P<secret>(?=[^\s]{0,60}\d)[^\s\"'`$<>(){},;\\]{8,4000})[ \t\r]*$"
        ),
    ),
    SecretKind(
        "password",
        # --password value, -p value of the programs that have it
        lazy_pattern(
            r"(?i)--(?:[a-z]{1,20}-){0,3}(?P<name>password|passwd|passphrase|secret|token|api-?key)"
            r"[ =](?P<secret>[^\s\"'`$<>(){},;\\-][^\s\"'`$<>(){},;\\]{5,4000})"
        ),
    ),
    SecretKind(
        "password",
        lazy_pattern(
            r"(?im)\bmachine\s+\S{1,200}\s+login\s+\S{1,200}\s+password\s+(?P<secret>\S{3,200})"
        ),
    ),
)

_secretive_name = lazy_pattern(
    rf"(?i)(?:^|[_.-]|[a-z](?=[A-Z]))?(?:{_SECRETIVE}|authorization|cookie)$"
)
_FOLDERS = ("PWD", "OLDPWD")
_random = lazy_pattern(
    r"(?<![A-Za-z0-9+/_=.@#-])[A-Za-z0-9+/_-]{24,180}={0,2}(?![A-Za-z0-9+/_=.@-])"
)
_digest = lazy_pattern(r"sha\d{1,3}[-_/]")
_lower_run = lazy_pattern(r"[a-z]{3,}")
_worded = lazy_pattern(r"(?i)pass|pwd|secret|credential")
_placeholder = lazy_pattern(
    r"(?i)x{3,}|\*{3,}|\.{3,}|example|your[-_]|changeme|placeholder|redacted|process\.|os\.|env\."
    r"|none|null|true|false|undefined|string|str$"
)


def spans_of_kinds(text: str) -> Iterator[Span]:
    """Every secret with a shape or a name, unsorted; some may overlap."""
    for kind in KINDS:
        if kind.hints and not any(hint in text for hint in kind.hints):
            continue
        for found in kind.pattern.finditer(text):
            secret = "secret" if "secret" in found.re.groupindex else 0
            if secret and _is_harmless(kind.name, found):
                continue
            yield Span(found.start(secret), found.end(secret), kind.name)


def spans_of_random(text: str) -> Iterator[Span]:
    """What looks like letters and digits drawn at random, and is neither a hash nor a path."""
    for found in _random.finditer(text):
        if _is_random(found[0]) and not _digest.match(found[0]):
            yield Span(found.start(), found.end(), "random value")


def _is_harmless(kind: str, found: re.Match[str]) -> bool:
    """Whether it only looks like the value of something secret: a placeholder, or a plain word
    where tokens and keys are counted or named."""
    value = found["secret"]
    if kind == "authorization header":
        return value.isalpha()
    if kind != "password":
        return False
    name = found.groupdict().get("name") or ""
    plain = value.isalpha() and not _worded.search(name)
    return bool(plain or _placeholder.match(value))


def is_secretive(name: str) -> bool:
    """Whether a field of this name has a secret as its value: `apiKey`, `DB_PASSWORD`."""
    return name not in _FOLDERS and _secretive_name.search(name) is not None


def _is_random(word: str) -> bool:
    """Upper case, lower case and digits mixed as only chance does. A hash in hexadecimal is not:
    commits, digests and ids are ordinary in a session. Nor is a name of several words."""
    digits = sum(c.isdigit() for c in word)
    upper = sum(c.isupper() for c in word)
    lower = sum(c.islower() for c in word)
    if (
        digits < 2 + (len(word) < 32)
        or upper < 4
        or lower < 4
        or word.count("/") > 2
        or word.count("-") > 3
    ):
        return False
    if word.count("_") > 3 or sum(map(len, _lower_run.findall(word))) > 0.4 * len(word):
        return False
    return _entropy(word) >= 0.8 * math.log2(min(len(word), 64))


def _entropy(word: str) -> float:
    """Bits per character, as often as each occurs."""
    size = len(word)
    return -sum(n / size * math.log2(n / size) for n in Counter(word).values())
