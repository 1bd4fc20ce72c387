"""Notices in the settings: `notify_command`, `webhook` and `push`."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import msgspec

from dragoman.agents.settings.setting_keys import PUSH_KEYS, WEBHOOK_KEYS
from dragoman.agents.settings.value_reader import ValueReader

LEAST_SECRET = 16
"""Bytes of the secret that signs a webhook."""
_KINDS = ("question", "turn_ended")


class WebhookSettings(msgspec.Struct, kw_only=True, frozen=True):
    """Notices are posted to `url`, signed with the content of `secret_file`. Only with `content` do
    they say what was asked or answered."""

    url: str
    secret_file: str
    events: tuple[str, ...] = _KINDS
    content: bool = False


class NoticeSettings(msgspec.Struct, kw_only=True, frozen=True):
    """`command` is run for questions and ends of turns that nobody saw."""

    command: tuple[str, ...] = ()
    webhook: WebhookSettings | None = None
    contact: str | None = None
    """Whom a push service may write to."""
    services: tuple[str, ...] = ()
    """Origins of push services besides those of browsers."""


NO_NOTICES = NoticeSettings()


class NoticeReader(ValueReader):
    """Raises ConfigError."""

    def notices(self, top: dict[str, Any]) -> NoticeSettings:
        if not {"notify_command", "webhook", "push"} & top.keys():
            return NO_NOTICES
        push = self._object(top.get("push", {}), "push", PUSH_KEYS)
        return NoticeSettings(
            command=self._command(top.get("notify_command")),
            webhook=self._webhook(top.get("webhook")),
            contact=self._contact(push.get("contact")),
            services=tuple(
                self._origin(each, f"push.services[{index}]")
                for index, each in enumerate(
                    self._strings(push.get("services", []), "push.services")
                )
            ),
        )

    def _command(self, value: Any) -> tuple[str, ...]:
        if value is None:
            return ()
        words = tuple(self._strings(value, "notify_command"))
        if not words or not words[0]:
            self._fail("notify_command", "a program and its arguments")
        return words

    def _webhook(self, value: Any) -> WebhookSettings | None:
        if value is None:
            return None
        entry = self._object(value, "webhook", WEBHOOK_KEYS)
        url = self._word(entry.get("url"), "webhook.url")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            self._fail("webhook.url", f"an http:// or https:// address, not {url!r}")
        events = tuple(self._strings(entry.get("events", list(_KINDS)), "webhook.events"))
        if wrong := [each for each in events if each not in _KINDS]:
            self._fail("webhook.events", f"{' or '.join(_KINDS)}, not {wrong[0]!r}")
        content = entry.get("content", False)
        if not isinstance(content, bool):
            self._fail("webhook.content", f"true or false, not {content!r}")
        file = self._path(entry.get("secret_file"), "webhook.secret_file")
        return WebhookSettings(url=url, secret_file=file, events=events, content=content)

    def _path(self, value: Any, place: str) -> str:
        import os

        path = os.path.expanduser(self._word(value, place))
        return os.path.join(os.path.dirname(os.path.abspath(self._file)), path)

    def _contact(self, value: Any) -> str | None:
        if value is None:
            return None
        contact = self._word(value, "push.contact")
        if not contact.startswith(("mailto:", "https://")):
            self._fail("push.contact", f'"mailto:…" or "https://…", not {contact!r}')
        return contact

    def _origin(self, text: str, place: str) -> str:
        parts = urlsplit(text)
        if parts.scheme not in ("http", "https") or text != f"{parts.scheme}://{parts.netloc}":
            self._fail(place, f"an origin like https://push.example, not {text!r}")
        return text
