"""Files for mentions and for prompts: found, kept, and never from outside."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
import pytest
from support.postgres import empty_database
from support.serving import Served, also_served, served

from dragoman.host.workspace import file_search, subfolders
from dragoman.host.workspace.file_search import FileSearch, rank_of
from dragoman.host.workspace.subfolders import branch_of, folders_in
from dragoman.session.content import Audio, Image, Resource, ResourceLink
from dragoman.store.postgres.store import open_postgres
from dragoman.store.records import SessionRecord
from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say
from dragoman.web.failures import RequestFailed
from dragoman.web.uploads import (
    KEPT_SECONDS,
    MAX_BYTES,
    Uploads,
    delete_with_sessions,
    keep_clean,
)

# ── for mentions ──────────────────────────────────────────────────────────────────────────────


def tree(root: Path) -> None:
    for name in ("src/app.py", "src/deep/app_test.py", "README.md", "node_modules/app/index.js"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    (root / ".git").mkdir()
    (root / ".git" / "application").write_text("")
    (root / "ours").mkdir()
    (root / "ours" / "app.txt").write_text("")
    (root / ".gitignore").write_text("# ours\n/ours/\n*.pyc\n")


def paths(root: Path, wanted: str) -> list[str]:
    return [match.path for match in FileSearch(str(root)).find(wanted, 50)]


def test_names_are_found_best_first(tmp_path: Path) -> None:
    tree(tmp_path)
    assert paths(tmp_path, "app") == ["src/app.py", "src/deep/app_test.py"]
    assert paths(tmp_path, "test")[0] == "src/deep/app_test.py"
    assert paths(tmp_path, "srcapp") == ["src/app.py", "src/deep/app_test.py"]
    assert paths(tmp_path, "src/")[0] == "src/"
    assert paths(tmp_path, "readme") == ["README.md"]
    assert paths(tmp_path, "zzz") == []


def test_folders_that_are_ignored_are_not_looked_into(tmp_path: Path) -> None:
    tree(tmp_path)
    found = paths(tmp_path, "")
    assert not [path for path in found if path.startswith((".git/", "node_modules", "ours"))]
    assert ".gitignore" in found


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("")
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "outside")
    assert paths(tmp_path / "inside", "secret") == []


def test_a_search_ends_in_time(tmp_path: Path) -> None:
    tree(tmp_path)
    search = FileSearch(str(tmp_path), seconds=-1.0)
    assert search.find("app", 10) == []
    assert not search.complete


def test_a_folder_of_very_many_files_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_search, "MAX_ENTRIES", 50)
    for number in range(51):
        (tmp_path / f"f{number}").touch()
    search = FileSearch(str(tmp_path))
    assert len(search.find("f", 100)) == 50
    assert not search.complete
    (tmp_path / "f0").unlink()
    search = FileSearch(str(tmp_path))
    assert len(search.find("f", 100)) == 50
    assert search.complete


@pytest.mark.parametrize(
    ("path", "wanted", "fits"),
    [("a/b.py", "ab", True), ("a/b.py", "ba", False), ("A.py", "a", True), ("x", "", True)],
)
def test_letters_fit_in_their_order(path: str, wanted: str, fits: bool) -> None:
    assert (rank_of(path, wanted) is not None) is fits


async def test_completion_speaks_of_all_roots(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}-notes.md").write_text("")
    async with served(tmp_path / "one", {"scripted": ScriptedAgent()}) as web:
        session_id = await web.new_session(additionalDirectories=[str(tmp_path / "two")])
        found = await web.call("GET", f"/api/sessions/{session_id}/files?q=notes")
        assert found["complete"]
        assert [file["path"] for file in found["files"]] == [
            "one-notes.md",
            f"{tmp_path}/two/two-notes.md",
        ]


# ── uploads ───────────────────────────────────────────────────────────────────────────────────


def test_an_upload_is_private_and_keeps_a_harmless_name(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path / "uploads")
    for name, kept in [
        ("a b.png", "a b.png"),
        ("../../../etc/passwd", "passwd"),
        ("..", "attachment"),
        (".hidden", "hidden"),
        ("a\nb\0c", "a-b-c"),
        ("C:\\dir\\x.txt", "x.txt"),
        ("", "attachment"),
        ("n" * 500, "n" * 100),
        ("字" * 100 + ".txt", "字" * 65 + ".txt"),
    ]:
        path = uploads.keep(b"data", name, "text/plain").path
        assert path.name == kept
        assert path.parent.parent == tmp_path / "uploads"
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700


def test_an_upload_becomes_the_content_that_fits(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path)
    for mime_type, data, kind in [
        ("image/png", b"x", Image),
        ("audio/wav", b"x", Audio),
        ("text/plain", b"x", Resource),
        ("text/plain", b"\xff", ResourceLink),
        ("application/zip", b"x", ResourceLink),
    ]:
        uri = uploads.keep(data, "name", mime_type).path.as_uri()
        assert isinstance(uploads.content(uri), kind)
    sound = uploads.keep(b"x", "a.wav", "audio/wav").path.as_uri()
    assert isinstance(uploads.content(sound, audio=False), ResourceLink)


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/passwd",
        "http://127.0.0.1/x/z",
        "{folder}/../secret",
        "{folder}/secret",
        "{folder}/x/../../secret",
        "{folder}/x/../secret",
        "{folder}/x/%2e%2e/secret",
        "{folder}/x/y/z",
        "{folder}/x/.z.type",
        "{folder}/none/none",
    ],
)
def test_nothing_but_uploads_is_read(uri: str, tmp_path: Path) -> None:
    folder = tmp_path / "uploads"
    for place in (tmp_path, folder, folder / "x", folder / "x" / "y"):
        place.mkdir(exist_ok=True)
        for name in ("secret", ".secret.type", "z", ".z.type"):
            (place / name).write_text("text/plain")
    with pytest.raises(RequestFailed):
        Uploads(folder).content(uri.format(folder=folder.as_uri()))


def test_old_uploads_are_deleted(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path)
    old, new = (uploads.keep(b"x", name, "text/plain").path for name in ("old", "new"))
    long_ago = time.time() - KEPT_SECONDS - 60
    os.utime(old.parent, (long_ago, long_ago))
    uploads.clean(time.time())
    assert (old.exists(), new.exists()) == (False, True)


def test_the_oldest_uploads_are_deleted_when_there_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.web.uploads.MAX_TOTAL_BYTES", 250)
    uploads = Uploads(tmp_path)
    kept = [uploads.keep(b"x" * 100, f"{n}", "text/plain").path for n in range(3)]
    for age, path in enumerate(kept):
        os.utime(path.parent, (1000.0 + age, 1000.0 + age))
    uploads.clean(1000.0)
    assert [path.exists() for path in kept] == [False, True, True]


async def uploaded(web: Served, name: str) -> str:
    headers = {"Content-Type": "application/zip"}
    response = await web.http.post(f"/api/uploads?name={name}", content=b"PK", headers=headers)
    return response.json()["uri"]


def in_prompt(uri: str) -> dict[str, Any]:
    return {"content": [{"type": "upload", "uri": uri}]}


async def sent_upload(web: Served, session_id: str, name: str) -> Path:
    """Uploaded, and sent in a prompt of the session; where it is kept."""
    uri = await uploaded(web, name)
    await web.call("POST", f"/api/sessions/{session_id}/prompt", in_prompt(uri))
    await web.until(session_id, "idle")
    return Path(unquote(urlsplit(uri).path))


async def test_uploads_are_deleted_with_their_session(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent([say("hello")])}) as web:
        session_id, other = await web.new_session(), await web.new_session()
        ours = await sent_upload(web, session_id, "ours.zip")
        theirs = await sent_upload(web, other, "theirs.zip")
        unsent = web.server.uploads.keep(b"PK", "unsent.zip", "application/zip").path
        await web.call("DELETE", f"/api/sessions/{session_id}")
        assert not ours.parent.exists()
        assert (theirs.exists(), unsent.exists()) == (True, True)


async def test_uploads_go_with_a_session_that_was_pruned(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent([say("hello")])}) as web:
        hub, uploads = web.server.hub, web.server.uploads
        session_id = await web.new_session()
        path = await sent_upload(web, session_id, "a.zip")
        await delete_with_sessions(uploads, hub.store)
        assert path.exists()
        await hub.detach(hub.live[session_id])
        assert await hub.deletion.forget(session_id, lambda record: True) is not None
        await delete_with_sessions(uploads, hub.store)
        assert not path.parent.exists()


async def test_uploads_stay_as_long_as_a_fork_of_their_session(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent([say("hello")])}) as web:
        first = await web.new_session()
        path = await sent_upload(web, first, "a.zip")
        second = (await web.call("POST", f"/api/sessions/{first}/fork", {}))["id"]
        await web.call("DELETE", f"/api/sessions/{first}")
        third = (await web.call("POST", f"/api/sessions/{second}/fork", {}))["id"]
        await web.call("DELETE", f"/api/sessions/{second}")
        assert path.exists()
        await web.call("DELETE", f"/api/sessions/{third}")
        assert not path.exists()


async def test_uploads_stay_with_a_grandchild_whose_ancestors_went_together(
    tmp_path: Path,
) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent([say("hello")])}) as web:
        hub, uploads = web.server.hub, web.server.uploads
        first = await web.new_session()
        path = await sent_upload(web, first, "a.zip")
        second = (await web.call("POST", f"/api/sessions/{first}/fork", {}))["id"]
        third = (await web.call("POST", f"/api/sessions/{second}/fork", {}))["id"]
        later = await web.new_session()
        of_later = await sent_upload(web, later, "b.zip")
        for session_id in (first, second, later):
            await hub.delete(session_id, local=True)
        await delete_with_sessions(uploads, hub.store)
        assert path.exists()
        assert not of_later.exists()  # the fork was made before it was sent
        await hub.delete(third, local=True)
        await delete_with_sessions(uploads, hub.store)
        assert not path.exists()


async def test_a_fork_made_by_a_host_whose_clock_is_slow_keeps_its_uploads(tmp_path: Path) -> None:
    store = await open_postgres(empty_database(), tmp_path / "home")
    uploads = Uploads(tmp_path / "uploads")
    path = uploads.keep(b"PK", "a.zip", "application/zip").path
    uploads.note(path.parent, store.id, "s-gone")

    async def fork(name: str, hours_ago: float) -> None:
        at = time.time() - hours_ago * 3600
        record = SessionRecord(id=name, agent="a", cwd="/", created_at=at, updated_at=at)
        await store.create_session(msgspec.structs.replace(record, parent="s-gone"))

    try:
        await fork("s-long-before", 48)
        await fork("s-later", 5)
        await delete_with_sessions(uploads, store)
        assert path.exists()
        await store.delete_session("s-later")
        await delete_with_sessions(uploads, store)
        assert not path.exists()
    finally:
        await store.aclose()


async def test_uploads_of_one_store_are_not_deleted_by_a_server_of_another(tmp_path: Path) -> None:
    agents = {"scripted": ScriptedAgent([say("hello")])}
    async with (
        served(tmp_path, agents, on_disk=True) as web,
        also_served(tmp_path, agents) as other,
    ):
        assert web.server.uploads.folder == other.server.uploads.folder
        session_id = await web.new_session()
        path = await sent_upload(web, session_id, "a.zip")
        stranger = await other.new_session()
        theirs = await sent_upload(other, stranger, "b.zip")
        await other.call("DELETE", f"/api/sessions/{stranger}")
        assert (path.exists(), theirs.exists()) == (True, False)
        uri = path.as_uri()
        again = await other.new_session()
        await other.call("POST", f"/api/sessions/{again}/prompt", in_prompt(uri))
        await other.until(again, "idle")
        await web.call("DELETE", f"/api/sessions/{session_id}")
        assert path.exists()  # in a session of the other store too


async def test_an_upload_of_a_prompt_that_was_refused_can_be_sent_again(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent([say("hello")])}) as web:
        session_id = await web.new_session()
        uri = await uploaded(web, "a.zip")
        for path in ("prompt", "queue"):
            refused = await web.refused("POST", f"/api/sessions/s-mistyped/{path}", in_prompt(uri))
            assert refused == (404, "unknown_session")
        await delete_with_sessions(web.server.uploads, web.server.hub.store)
        await web.call("POST", f"/api/sessions/{session_id}/prompt", in_prompt(uri))
        await web.until(session_id, "idle")


async def test_how_often_a_deletion_asks_the_store_does_not_grow_with_the_uploads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent([say("hello")])}) as web:
        store, asked = web.server.hub.store, 0

        def counted(name: str) -> None:
            method = getattr(type(store), name)

            def count(*given: Any, **more: Any) -> Any:
                nonlocal asked
                asked += 1
                return method(*given, **more)

            monkeypatch.setattr(type(store), name, count)

        for name in ("session", "sessions", "kin"):
            counted(name)
        sessions = [await web.new_session() for _ in range(12)]
        for number, session_id in enumerate(sessions):
            await sent_upload(web, session_id, f"{number}.zip")
        counts: list[int] = []
        for session_id in sessions:
            asked = 0
            await web.call("DELETE", f"/api/sessions/{session_id}")
            counts.append(asked)
        assert counts[0] <= counts[-1] + 1
        assert not [each for each in (tmp_path / "uploads").iterdir() if each.is_dir()]


def test_a_note_that_nobody_can_read_is_nobody_s(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path)
    path = uploads.keep(b"x", "a", "text/plain").path
    (path.parent / ".sessions").write_bytes(b"sqlite s-1\n\xff\xfe\n")
    assert uploads.sent_only_in("sqlite") == {}
    (path.parent / ".sessions").write_bytes(b"sqlite s-1\nsqlite s-2\n")
    assert uploads.sent_only_in("sqlite") == {path.parent: {"s-1", "s-2"}}


async def test_cleaning_goes_on_whatever_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cleaned = asyncio.Event()

    class Odd(Uploads):
        def clean(self, now: float) -> None:
            if not caplog.messages:
                raise ValueError("an odd one")
            loop.call_soon_threadsafe(cleaned.set)

    loop = asyncio.get_running_loop()
    monkeypatch.setattr("dragoman.web.uploads.CLEAN_SECONDS", 0.0)
    async with served(tmp_path) as web:
        cleaning = asyncio.create_task(keep_clean(Odd(tmp_path), web.server.hub.store))
        async with asyncio.timeout(60):
            await cleaned.wait()
        cleaning.cancel()
        await asyncio.wait([cleaning])
    assert "an odd one" in caplog.text


async def test_an_upload_has_a_limit(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent()}) as web:
        kind = {"content-type": "text/plain"}
        large = b"x" * (MAX_BYTES + 1)
        response = await web.http.post("/api/uploads", content=large, headers=kind)
        assert (response.status_code, response.json()["error"]["code"]) == (413, "too_large")
        response = await web.http.post("/api/uploads", content=large[:-1], headers=kind)
        assert response.status_code == 201
        response = await web.http.post("/api/uploads", content=b"", headers=kind)
        assert response.status_code == 400


@pytest.mark.parametrize(
    ("number", "expected"),
    [(errno.ENOSPC, (507, "store_full")), (errno.EIO, (503, "store_failed"))],
)
async def test_an_upload_for_which_there_is_no_room_says_so_and_leaves_nothing(
    number: int, expected: tuple[int, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def full(path: str | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if str(path).endswith(".a.txt.type"):
            raise OSError(number, os.strerror(number))
        return opened(path, flags, mode, dir_fd=dir_fd)

    async with served(tmp_path, {"scripted": ScriptedAgent()}) as web:
        monkeypatch.setattr(os, "open", full)
        headers = {"content-type": "text/plain"}
        response = await web.http.post("/api/uploads?name=a.txt", content=b"x", headers=headers)
        assert (response.status_code, response.json()["error"]["code"]) == expected
    assert list((tmp_path / "uploads").iterdir()) == []


def test_uploads_that_another_server_deletes_meanwhile_are_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploads = Uploads(tmp_path)
    uploads.keep(b"x", "a", "text/plain")

    listed = list(tmp_path.iterdir())

    def gone(path: Path) -> Iterator[Path]:
        if path != tmp_path:
            raise FileNotFoundError(path)
        return iter(listed)

    monkeypatch.setattr(Path, "iterdir", gone)
    uploads.clean(time.time())
    assert all(folder.exists() for folder in listed)


# ── where a session may work ──────────────────────────────────────────────────────────────────


async def test_the_folders_in_a_folder_are_listed_with_its_branch(tmp_path: Path) -> None:
    for name in ("work/b", "work/A", "work/.hidden", ".git"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "work/file.txt").write_text("")
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/topic/one\n")
    async with served(tmp_path, {}) as site:
        told = await site.call("GET", f"/api/folders?path={tmp_path}/work")
        assert told["folders"] == ["A", "b", ".hidden"]
        assert told["complete"]
        assert told["branch"] == "topic/one"
        assert told["parent"] == str(tmp_path)


async def test_what_is_no_folder_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with served(tmp_path, {}) as site:
        told = await site.call("GET", f"/api/folders?path={tmp_path}/file")
        assert (told["folders"], told["problem"]) == ([], "Not a directory")
        told = await site.call("GET", f"/api/folders?path={tmp_path}/nowhere")
        assert told["problem"] == "No such file or directory"
        response = await site.http.get("/api/folders", params={"path": "relative"})
        assert response.status_code == 400
        assert response.json()["error"]["code"] == "invalid"


def test_the_branch_of_a_worktree_is_found_and_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "main/.git/worktrees/side").mkdir(parents=True)
    (tmp_path / "main/.git/worktrees/side/HEAD").write_text("ref: refs/heads/side\n")
    (tmp_path / "side/src").mkdir(parents=True)
    (tmp_path / "side/.git").write_text(f"gitdir: {tmp_path}/main/.git/worktrees/side\n")
    assert branch_of(str(tmp_path / "side/src")) == "side"
    (tmp_path / "main/.git/HEAD").write_text("0123456789abcdef\n")
    assert branch_of(str(tmp_path / "main")) is None
    (tmp_path / "main/.git/HEAD").unlink()
    os.mkfifo(tmp_path / "main/.git/HEAD")
    assert branch_of(str(tmp_path / "main")) is None


def test_of_a_folder_of_very_many_names_the_first_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subfolders, "_MOST", 3)
    for name in "abcde":
        (tmp_path / name).mkdir()
    folders, complete = folders_in(str(tmp_path))
    assert len(folders) == 3
    assert not complete
