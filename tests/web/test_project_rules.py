"""The rules kept with a project, over HTTP: what is trusted is what was shown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support.serving import Served, served

from dragoman.host.rules.project_file import NAME

AT = "/api/policies/project"
ALLOW = '[[rules]]\neffect = "allow"\noperation = "write"\n'
DENY = '[[rules]]\neffect = "deny"\noperation = "write"\npath = "secret/**"\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".dragoman").mkdir(parents=True)
    (folder / NAME).write_text(ALLOW + DENY)
    return folder


async def look(web: Served, folder: Path) -> dict[str, Any]:
    return await web.call("GET", AT, params={"folder": str(folder)})


async def trust(web: Served, folder: Path, digest: str) -> dict[str, Any]:
    return await web.call("POST", AT, {"folder": str(folder), "digest": digest})


async def effect(web: Served, folder: Path, path: str) -> str:
    wanted = {"operation": "write", "path": path, "cwd": str(folder)}
    return (await web.call("POST", "/api/policies/explain", wanted))["effect"]


def rows(shown: dict[str, Any]) -> list[tuple[str, bool, bool]]:
    return [(each["sentence"], each["written"], each["trusted"]) for each in shown["rules"]]


async def test_a_file_counts_from_when_it_is_trusted_until_that_is_taken_back(
    tmp_path: Path, project: Path
) -> None:
    async with served(tmp_path) as web:
        shown = await look(web, project)
        assert (shown["standing"], shown["problem"]) == ("untrusted", None)
        assert shown["path"] == str(project / NAME)
        assert [each["effect"] for each in shown["rules"]] == ["allow", "deny"]
        assert rows(shown) == [
            ("allow writing any file in this project", True, False),
            ("refuse writing files secret/** in this project", True, False),
        ]
        assert await effect(web, project, "a") == await effect(web, project, "secret/a") == "ask"
        told = await trust(web, project, shown["digest"])
        assert told == await look(web, project)
        assert (told["standing"], told["digest"]) == ("trusted", shown["digest"])
        assert all(each["trusted"] for each in told["rules"])
        assert await effect(web, project, "a") == "allow"
        assert await effect(web, project, "secret/a") == "deny"
        ended = await web.call("DELETE", AT, params={"folder": str(project)})
        assert ended == shown
        assert await effect(web, project, "a") == await effect(web, project, "secret/a") == "ask"
        assert await web.call("GET", "/api/policies") == {"policies": []}


async def test_nothing_is_trusted_that_was_not_shown(tmp_path: Path, project: Path) -> None:
    async with served(tmp_path) as web:
        shown = await look(web, project)
        (project / NAME).write_text('[[rules]]\neffect = "allow"\noperation = "execute"\n')
        body = {"folder": str(project), "digest": shown["digest"]}
        reply = await web.http.post(AT, json=body)
        assert (reply.status_code, reply.json()["error"]["code"]) == (409, "conflict")
        words = f"nothing was trusted: {project / NAME} is not as it was shown; look at it again"
        assert reply.json()["error"]["message"] == words
        for broken in ("[[rules]]\neffect =", None):
            (project / NAME).unlink()
            if broken is not None:
                (project / NAME).write_text(broken)
            reply = await web.http.post(AT, json=body)
            assert (reply.status_code, "\n" in reply.json()["error"]["message"]) == (409, False)
        assert await web.call("GET", "/api/policies") == {"policies": []}


async def test_a_changed_file_shows_what_changed_and_allows_nothing(
    tmp_path: Path, project: Path
) -> None:
    async with served(tmp_path) as web:
        await trust(web, project, (await look(web, project))["digest"])
        more = '[[rules]]\neffect = "allow"\noperation = "execute"\n'
        (project / NAME).write_text(ALLOW + more)
        shown = await look(web, project)
        assert shown["standing"] == "changed"
        assert rows(shown) == [
            ("allow writing any file in this project", True, True),
            ("allow running any command in this project", True, False),
            ("refuse writing files secret/** in this project", False, True),
        ]
        assert await effect(web, project, "a") == "ask"
        assert await effect(web, project, "secret/a") == "deny"
        told = await trust(web, project, shown["digest"])
        assert (told["standing"], len(told["rules"])) == ("trusted", 2)
        assert len((await web.call("GET", "/api/policies"))["policies"]) == 2
        assert await effect(web, project, "secret/a") == "allow"
        (project / NAME).unlink()
        gone = await look(web, project)
        assert (gone["standing"], gone["digest"]) == ("gone", None)
        assert [each["written"] for each in gone["rules"]] == [False, False]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[[rules]]\neffect =", "expected"),
        ('[[rules]]\neffect = "maybe"', "rules[0].effect: expected allow, ask or deny"),
        ('[[rules]]\neffect = "allow"\n"a\\nb" = 1', "expected"),
        ("link", "expected a file in the project, not a link"),
        (b"\xff", "byte 0: expected text in UTF-8"),
    ],
)
async def test_a_broken_file_says_in_one_line_what_is_wrong(
    tmp_path: Path, project: Path, content: str | bytes, words: str
) -> None:
    async with served(tmp_path) as web:
        await trust(web, project, (await look(web, project))["digest"])
        file = project / NAME
        if content == "link":
            file.rename(project / "rules.toml")
            os.symlink(project / "rules.toml", file)
        else:
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        shown = await look(web, project)
        assert (shown["standing"], shown["digest"]) == ("broken", None)
        assert shown["problem"].startswith(str(file))
        assert words in shown["problem"]
        assert "\n" not in shown["problem"]
        assert await effect(web, project, "a") == "ask"
        assert await effect(web, project, "secret/a") == "deny"
        ended = await web.call("DELETE", AT, params={"folder": str(project)})
        assert (ended["standing"], ended["rules"]) == ("broken", [])
        assert await effect(web, project, "secret/a") == "ask"


async def test_the_same_content_elsewhere_is_another_file(tmp_path: Path, project: Path) -> None:
    other = tmp_path / "other"
    (other / ".dragoman").mkdir(parents=True)
    (other / NAME).write_text(ALLOW + DENY)
    async with served(tmp_path) as web:
        shown = await look(web, project)
        body = {"folder": str(other), "digest": shown["digest"]}
        assert await web.refused("POST", AT, body) == (409, "conflict")
        await trust(web, project, shown["digest"])
        assert (await look(web, other))["standing"] == "untrusted"
        await web.call("DELETE", AT, params={"folder": str(other)})
        assert (await look(web, project))["standing"] == "trusted"


async def test_a_folder_must_be_named_in_full_and_be_there_to_be_trusted(tmp_path: Path) -> None:
    async with served(tmp_path) as web:
        for method in ("GET", "DELETE"):
            reply = await web.http.request(method, AT, params={"folder": "project"})
            assert (reply.status_code, reply.json()["error"]["code"]) == (400, "invalid")
        for folder in ("project", str(tmp_path / "nowhere"), "a\0b"):
            body = {"folder": folder, "digest": "0" * 40}
            assert await web.refused("POST", AT, body) == (400, "invalid")
        nowhere = await look(web, tmp_path / "nowhere")
        assert (nowhere["standing"], nowhere["rules"]) == ("none", [])


async def test_a_single_rule_that_was_revoked_can_be_trusted_again(
    tmp_path: Path, project: Path
) -> None:
    async with served(tmp_path) as web:
        told = await trust(web, project, (await look(web, project))["digest"])
        stored = (await web.call("GET", "/api/policies"))["policies"]
        # What denies is stored first: nothing is allowed meanwhile that the file denies.
        assert [each["rule"]["effect"] for each in stored] == ["deny", "allow"]
        await web.call("DELETE", "/api/policies", params={"id": stored[0]["id"]})
        shown = await look(web, project)
        assert [each["trusted"] for each in shown["rules"]] == [True, False]
        assert await trust(web, project, shown["digest"]) == told
        assert await effect(web, project, "secret/a") == "deny"
