"""Files of a user message: inline where the agent takes it, else a file to write and a link."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.client.capabilities import AgentCapabilities
from dragoman.session.content import Audio, Content, Image, Resource, ResourceLink
from dragoman.ui_stream.decoder import Attachment, FileReader, UnusableFile

NOTHING = AgentCapabilities()
EVERYTHING = AgentCapabilities(image=True, audio=True, embedded_context=True)
FOLDER = "file:///data/files/"


def read(
    url: str, media_type: Any = None, filename: Any = None, agent: AgentCapabilities = EVERYTHING
) -> Content:
    return FileReader(agent, FOLDER).read(url, media_type, filename)


@pytest.mark.parametrize(
    ("url", "media_type", "expected"),
    [
        ("data:image/png;base64,QQ==", "image/png", Image("QQ==", "image/png")),
        ("DATA:image/png;BASE64,QQ%3D%3D", None, Image("QQ==", "image/png")),
        ("data:audio/wav;base64,QQ==", "audio/wav", Audio("QQ==", "audio/wav")),
        ("data:;base64,QQ==", "image/gif", Image("QQ==", "image/gif")),
        ("data:image/svg+xml,%3Csvg/%3E", None, Image("PHN2Zy8+", "image/svg+xml")),
    ],
)
def test_a_picture_or_a_sound_goes_as_such(url: str, media_type: Any, expected: Content) -> None:
    assert read(url, media_type) == expected


def test_a_text_is_an_embedded_resource() -> None:
    found = read("data:text/plain;charset=utf-8;base64,w6k=", "text/plain", "a b.txt")
    assert found == Resource("attachment:a%20b.txt", content="é", mime_type="text/plain")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("data:application/pdf;base64,QQ==", "application/pdf"),
        ("data:text/plain;base64,/w==", "text/plain"),
        ("data:,%FF", "application/octet-stream"),
    ],
)
def test_what_is_no_text_is_embedded_as_bytes(url: str, expected: str) -> None:
    found = read(url)
    assert isinstance(found, Resource)
    assert (found.content, found.mime_type) == (None, expected)
    assert found.blob is not None


def test_json_is_text() -> None:
    assert read("data:application/json,%7B%7D", None, "a.json") == Resource(
        "attachment:a.json", content="{}", mime_type="application/json"
    )


def test_what_the_agent_does_not_take_is_a_file_and_a_link() -> None:
    reader = FileReader(NOTHING, FOLDER)
    link = reader.read("data:image/png;base64,QQ==", "image/png", "me & you.png")
    name = "559aead08264-me-you.png"
    assert reader.attachments == [Attachment(name, b"A", "image/png")]
    assert link == ResourceLink(f"{FOLDER}{name}", "me & you.png", "image/png", size=1)


@pytest.mark.parametrize(
    ("filename", "expected"),
    [
        (None, "attachment"),
        ("../../etc/passwd", "etc-passwd"),
        (".bashrc", "bashrc"),
        ("..", "attachment"),
        ("x" * 200 + ".txt", "x" * 76 + ".txt"),
        (3, "attachment"),
    ],
)
def test_the_name_of_a_file_is_of_our_own_making(filename: Any, expected: str) -> None:
    reader = FileReader(NOTHING, FOLDER)
    reader.read("data:,A", None, filename)
    assert reader.attachments[0].name == f"559aead08264-{expected}"


def test_a_picture_for_an_agent_that_only_embeds_is_embedded() -> None:
    found = read("data:image/png;base64,QQ==", agent=AgentCapabilities(embedded_context=True))
    assert isinstance(found, Resource)
    assert found.blob == "QQ=="


@pytest.mark.parametrize(
    ("url", "filename", "name"),
    [
        ("https://x.org/a/b.pdf?q=1", None, "b.pdf"),
        ("HTTP://x.org/", None, "HTTP://x.org/"),
        ("https://x.org/a", "A", "A"),
    ],
)
def test_a_web_address_is_a_link(url: str, filename: str | None, name: str) -> None:
    assert read(url, "application/pdf", filename) == ResourceLink(url, name, "application/pdf")
    assert read(url, None, filename) == ResourceLink(url, name)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        "ftp://x/a,b",
        "javascript:alert(1,2)",
        "blob:http://x/1",
        "/etc/passwd",
        "",
        " https://x",
        "data:text/plain",
        "data:image/png;base64,!!!",
        "data:image/png;base64,QQ=",
    ],
)
def test_any_other_address_is_refused(url: str) -> None:
    with pytest.raises(UnusableFile):
        read(url)
