"""A webhook is signed and tried again within bounds; a command runs once; neither tells content
that was not asked for."""

from __future__ import annotations

import hashlib
import hmac
import json
import sys
from pathlib import Path

import pytest
from store.stores import in_memory
from support.clients import until
from support.notified import Sessions, hub_on, notifying, settings_for, until_marked
from support.push_stub import Pushed, push_stub

from dragoman import ConfigError
from dragoman.agents.settings.notice_settings import NoticeSettings, WebhookSettings
from dragoman.agents.settings.settings_file import load_settings

SECRET = b"a secret of many bytes"


def is_signed(pushed: Pushed, secret: bytes) -> bool:
    """As a receiver checks it."""
    parts = dict(part.split("=", 1) for part in pushed.headers["dragoman-signature"].split(","))
    wanted = hmac.new(secret, parts["t"].encode() + b"." + pushed.body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(parts["v1"], wanted) and abs(int(parts["t"]) - pushed.at) < 60


def hook(tmp_path: Path, origin: str, **fields: object) -> WebhookSettings:
    (tmp_path / "secret").write_bytes(SECRET + b"\n")
    given = {"url": f"{origin}/hook", "secret_file": str(tmp_path / "secret"), **fields}
    return WebhookSettings(**given)  # pyright: ignore[reportArgumentType]


async def test_a_webhook_gets_signed_notices_also_while_someone_looks(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as store, push_stub() as stub, hub_on(store) as hub:
        sessions = Sessions(store)
        await sessions.begin("s")
        settings = settings_for(stub, webhook=hook(tmp_path, stub.origin))
        async with notifying(hub, tmp_path, settings) as notices:
            notices.attention.note("w", looking=True)
            stub.answers[:] = [(502, "")]
            asked = await sessions.ask("s", "r")
            await until_marked(store, {asked}, "webhook")
            ended = await sessions.end_turn("s", error="it broke")
            await until_marked(store, {ended}, "webhook")
        assert all(is_signed(each, SECRET) for each in stub.came)
        assert not any(is_signed(each, b"another secret") for each in stub.came)
        bodies = [json.loads(each.body) for each in stub.came]
        assert sorted(each["id"] for each in bodies) == sorted([asked, asked, ended])
        assert all("secret title" not in each.body.decode() for each in stub.came)
        kinds = {each["kind"]: each for each in bodies}
        assert kinds["turn_ended"]["outcome"] == "failed"
        assert set(kinds["question"]) == {"id", "kind", "at", "session", "agent", "request"}


async def test_it_can_ask_for_content_and_for_some_kinds_alone(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as store, push_stub() as stub, hub_on(store) as hub:
        sessions = Sessions(store)
        await sessions.begin("s")
        to = hook(tmp_path, stub.origin, content=True, events=("question",))
        async with notifying(hub, tmp_path, settings_for(stub, webhook=to)):
            first = await sessions.ask("s", "r")
            await until_marked(store, {first}, "webhook")
            await sessions.end_turn("s")
            last = await sessions.ask("s", "r")
            await until_marked(store, {last}, "webhook")
        [_, only] = [json.loads(each.body) for each in stub.came]
        assert (only["title"], only["words"]) == ("A secret title", "make all")


async def test_without_a_usable_secret_nothing_is_sent(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as store, push_stub() as stub, hub_on(store) as hub:
        sessions = Sessions(store)
        await sessions.begin("s")
        to = hook(tmp_path, stub.origin)
        (tmp_path / "secret").write_text("too short")
        async with notifying(hub, tmp_path, settings_for(stub, webhook=to)):
            asked = await sessions.ask("s", "r")
            await until_marked(store, {asked}, "webhook")
        assert stub.came == []


async def test_the_command_runs_once_for_what_nobody_sees(tmp_path: Path) -> None:
    log = tmp_path / "log"
    words = (
        "import os, sys\n"
        "told = os.environ['DRAGOMAN_NOTICE'] + sys.stdin.read()\n"
        "open(sys.argv[1], 'a').write(told + '\\n')\n"
        "sys.exit(3)"
    )
    command = (sys.executable, "-c", words, str(log))
    async with in_memory(tmp_path) as store, hub_on(store) as hub:
        sessions = Sessions(store)
        await sessions.begin("s")
        async with notifying(hub, tmp_path, NoticeSettings(command=command)) as notices:
            notices.attention.note("w", looking=True)
            seen = await sessions.ask("s", "seen")
            await until_marked(store, {seen}, "command")
            notices.attention.note("w", looking=False)
            asked = await sessions.ask("s", "asked")
            await until_marked(store, {asked}, "command")
        await until(log.exists)
        [line] = log.read_text().splitlines()
        told = json.loads(line.removeprefix("question"))
        assert (told["request"], told["words"]) == ("asked", "make all")


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"notify_command": "notify-send"}, "notify_command"),
        ({"notify_command": []}, "notify_command"),
        ({"webhook": {"url": "ftp://x", "secret_file": "s"}}, "webhook.url"),
        ({"webhook": {"url": "https://x"}}, "webhook.secret_file"),
        ({"webhook": {"url": "https://x", "secret_file": "s", "key": 1}}, "webhook.key"),
        (
            {"webhook": {"url": "https://x", "secret_file": "s", "events": ["all"]}},
            "webhook.events",
        ),
        ({"webhook": {"url": "https://x", "secret_file": "s", "content": 1}}, "webhook.content"),
        ({"push": {"contact": "me"}}, "push.contact"),
        ({"push": {"services": ["https://x/path"]}}, "push.services[0]"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, settings: object, place: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(settings))
    with pytest.raises(ConfigError) as caught:
        load_settings(path)
    assert place in str(caught.value)


def test_a_file_with_a_secret_is_looked_for_beside_the_settings(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"webhook": {"url": "https://x", "secret_file": "s"}}))
    webhook = load_settings(path).notices.webhook
    assert webhook is not None
    assert webhook.secret_file == str(tmp_path / "s")
