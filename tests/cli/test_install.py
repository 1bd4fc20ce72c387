"""`dragoman agents install` and `remove`: archives, npm and PyPI, all on this machine."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from support.command import Done, Dragoman
from support.https import Served, make_certificate, serving

from dragoman.agents.install.registry import platform_key

if shutil.which("openssl") is None:
    pytest.skip("a certificate for the server needs openssl", allow_module_level=True)

PROGRAM = f"#!/bin/sh\nexec {sys.executable} -m dragoman.testing.demo\n"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def server(certificate: Path) -> Generator[Served]:
    with serving(certificate) as served:
        yield served


def archive(**files: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o755
            tar.addfile(info, io.BytesIO(content.encode()))
    return buffer.getvalue()


def entry(agent_id: str = "tiny", version: str = "1.0.0", **distribution: Any) -> dict[str, Any]:
    return {
        "id": agent_id,
        "name": agent_id.title(),
        "version": version,
        "description": "an agent",
        "license": "MIT",
        "distribution": distribution,
    }


def binary(server: Served, data: bytes, *, path: str = "/tiny.tar.gz", **more: Any) -> Any:
    server.bodies[path] = data
    return {platform_key(): {"archive": server.url + path, "cmd": "./tiny", **more}}


class Installing:
    """A user who installs from a registry file."""

    def __init__(self, dragoman: Dragoman, server: Served) -> None:
        self.dragoman = dragoman
        self.env = {"SSL_CERT_FILE": str(server.certificate)}
        self.registry = dragoman.home / "registry.json"

    def offer(self, *entries: dict[str, Any]) -> None:
        self.registry.write_text(json.dumps({"version": "1.0.0", "agents": entries}))

    def __call__(self, agent_id: str, *words: str, **more: Any) -> Done:
        registry = () if "--registry" in words else ("--registry", str(self.registry))
        env = self.env | more.pop("env", {})
        return self.dragoman("agents", "install", agent_id, *registry, *words, env=env, **more)

    @property
    def agents(self) -> dict[str, Any]:
        return json.loads(self.dragoman.settings.read_text())["agent_servers"]

    @property
    def installed(self) -> list[str]:
        home = self.dragoman.state / "agents"
        return sorted(str(path.relative_to(home)) for path in home.glob("*/*"))


@pytest.fixture
def installing(dragoman: Dragoman, server: Served) -> Installing:
    return Installing(dragoman, server)


# ── archives ──────────────────────────────────────────────────────────────────────────────────


def test_an_archive_is_fetched_checked_unpacked_and_works(
    installing: Installing, server: Served
) -> None:
    data = archive(tiny=PROGRAM, readme="hello")
    installing.offer(
        entry(
            binary=binary(server, data, sha256=hashlib.sha256(data).hexdigest(), env={"TINY": "1"})
        )
    )
    done = installing("tiny")
    assert (done.code, done.err) == (0, "")
    assert "Tiny 1.0.0, licence: MIT" in done.out
    assert "checksum verified" in done.out
    program = installing.dragoman.state / "agents" / "tiny" / "1.0.0" / "tiny"
    assert installing.agents == {
        "tiny": {"command": str(program), "args": [], "env": {"TINY": "1"}}
    }
    assert stat.S_IMODE(program.stat().st_mode) == 0o700
    assert stat.S_IMODE(installing.dragoman.settings.stat().st_mode) == 0o600
    caps = installing.dragoman("-a", "tiny", "--list-caps")
    assert caps.code == 0
    assert "demo" in caps.out


@pytest.mark.parametrize("name", ["/tiny.zip", "/tiny-linux"])
def test_a_zip_and_a_bare_program_are_understood_too(
    installing: Installing, server: Served, name: str
) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as zipped:
        zipped.writestr("tiny", PROGRAM)
    data = buffer.getvalue() if name.endswith(".zip") else PROGRAM.encode()
    installing.offer(entry(binary=binary(server, data, path=name)))
    done = installing("tiny")
    assert done.code == 0
    assert "no checksum in the registry" in done.out
    assert os.access(installing.agents["tiny"]["command"], os.X_OK)


def test_a_wrong_checksum_installs_nothing(installing: Installing, server: Served) -> None:
    installing.offer(entry(binary=binary(server, archive(tiny="evil"), sha256="0" * 64)))
    done = installing("tiny")
    assert done.code == 1
    assert f"expected {'0' * 64}" in done.err
    assert installing.installed == []
    assert not installing.dragoman.settings.exists()


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"../tiny": "x"}, "points outside it"),
        ({"other": "x", "two": "y"}, "./tiny is not in the archive"),
    ],
)
def test_an_archive_that_will_not_do_leaves_nothing(
    installing: Installing, server: Served, files: dict[str, str], words: str
) -> None:
    installing.offer(entry(binary=binary(server, archive(**files))))
    done = installing("tiny")
    assert done.code == 1
    assert words in done.err
    assert installing.installed == []
    assert not (installing.dragoman.state / "agents" / "tiny").exists()


# ── only https ────────────────────────────────────────────────────────────────────────────────


def test_an_archive_over_http_is_refused(installing: Installing, server: Served) -> None:
    target = {"archive": server.url.replace("https", "http") + "/tiny", "cmd": "./tiny"}
    installing.offer(entry(binary={platform_key(): target}))
    done = installing("tiny")
    assert done.code == 1
    assert "only https is allowed" in done.err
    assert server.asked == []


def test_a_redirect_to_http_is_not_followed(installing: Installing, server: Served) -> None:
    target = binary(server, archive(tiny=PROGRAM))
    server.redirects["/tiny.tar.gz"] = server.url.replace("https", "http") + "/elsewhere"
    installing.offer(entry(binary=target))
    done = installing("tiny")
    assert done.code == 1
    assert "only https is allowed" in done.err
    assert server.asked == ["/tiny.tar.gz"]


def test_a_redirect_to_https_is_followed(installing: Installing, server: Served) -> None:
    target = binary(server, b"not this")
    server.redirects["/tiny.tar.gz"] = f"{server.url}/elsewhere"
    server.bodies["/elsewhere"] = archive(tiny=PROGRAM)
    installing.offer(entry(binary=target))
    assert installing("tiny").code == 0


def test_a_server_nobody_vouches_for_is_not_believed(
    installing: Installing, server: Served
) -> None:
    installing.offer(entry(binary=binary(server, archive(tiny=PROGRAM))))
    done = installing("tiny", env={"SSL_CERT_FILE": "/dev/null"})
    assert done.code == 1
    assert "certificate" in done.err.lower()


def test_the_registry_itself_can_be_an_address(installing: Installing, server: Served) -> None:
    listed = entry(binary=binary(server, archive(tiny=PROGRAM)))
    server.bodies["/registry.json"] = json.dumps({"agents": [listed]}).encode()
    assert installing("tiny", "--registry", f"{server.url}/registry.json").code == 0
    http = f"{server.url}/registry.json".replace("https", "http")
    done = installing("tiny", "--registry", http)
    assert done.code == 1
    assert "only https is allowed" in done.err


# ── packages ──────────────────────────────────────────────────────────────────────────────────

NPM = """\
#!/bin/sh
echo "$@" >> "$HOME/npm.log"
[ -e "$HOME/npm.fails" ] && { echo "npm error 404 no such package" >&2; exit 1; }
mkdir -p "$3/node_modules/.bin" "$3/node_modules/@acme/agent"
echo '{"bin": {"acme-acp": "dist/index.js"}}' > "$3/node_modules/@acme/agent/package.json"
echo '#!/bin/sh' > "$3/node_modules/.bin/acme-acp"
"""


def with_npm(installing: Installing) -> dict[str, str]:
    """A stand-in for npm, which cannot be had without a network."""
    folder = installing.dragoman.home / "bin"
    folder.mkdir()
    (folder / "npm").write_text(NPM)
    (folder / "npm").chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_an_npm_package_is_installed_pinned_and_without_scripts(installing: Installing) -> None:
    env = with_npm(installing)
    installing.offer(entry(npx={"package": "@acme/agent", "args": ["--acp"]}))
    assert installing("tiny", env=env).code == 0
    folder = installing.dragoman.state / "agents" / "tiny" / "1.0.0"
    words = (installing.dragoman.home / "npm.log").read_text().split()
    assert words[:4] == ["install", "--prefix", str(folder), "--ignore-scripts"]
    assert words[-2:] == ["--", "@acme/agent@1.0.0"]
    assert installing.agents["tiny"] == {
        "command": str(folder / "node_modules" / ".bin" / "acme-acp"),
        "args": ["--acp"],
        "env": {},
    }


def test_scripts_of_packages_run_only_when_allowed(installing: Installing) -> None:
    env = with_npm(installing)
    installing.offer(entry(npx={"package": "@acme/agent@2.1.0"}))
    assert installing("tiny", "--allow-scripts", env=env).code == 0
    words = (installing.dragoman.home / "npm.log").read_text().split()
    assert "--ignore-scripts" not in words
    assert words[-1] == "@acme/agent@2.1.0"


def test_what_was_installed_comes_back_when_a_new_try_fails(installing: Installing) -> None:
    env = with_npm(installing)
    installing.offer(entry(npx={"package": "@acme/agent@1.0.0"}))
    assert installing("tiny", env=env).code == 0
    before = installing.dragoman.settings.read_text()
    (installing.dragoman.home / "npm.fails").touch()
    done = installing("tiny", env=env)
    assert done.code == 1
    assert "npm failed:\nnpm error 404 no such package" in done.err
    assert Path(installing.agents["tiny"]["command"]).exists()
    assert installing.dragoman.settings.read_text() == before
    assert installing.installed == ["tiny/1.0.0"]


def test_without_npm_the_sentence_says_so(installing: Installing) -> None:
    installing.offer(entry(npx={"package": "@acme/agent@1.0.0"}))
    done = installing("tiny", env={"PATH": "/nowhere"})
    assert done.code == 1
    assert "npm is required by this agent, but was not found" in done.err


def wheel(folder: Path) -> None:
    """A package with a program of another name."""
    folder.mkdir()
    files = {
        "acme_agent.py": "def main():\n    print('it runs')\n",
        "acme_agent-1.2.3.dist-info/METADATA": "Metadata-Version: 2.1\nName: acme-agent\n"
        "Version: 1.2.3\n",
        "acme_agent-1.2.3.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
        "acme_agent-1.2.3.dist-info/entry_points.txt": "[console_scripts]\n"
        "acme-acp = acme_agent:main\n",
    }
    with zipfile.ZipFile(folder / "acme_agent-1.2.3-py3-none-any.whl", "w") as packed:
        for name, content in files.items():
            packed.writestr(name, content)
        record = "".join(f"{name},,\n" for name in files)
        packed.writestr("acme_agent-1.2.3.dist-info/RECORD", record)


@pytest.mark.soak  # an environment with pip in it takes its time
def test_a_pypi_package_gets_an_environment_of_its_own(
    installing: Installing, tmp_path: Path
) -> None:
    wheel(tmp_path / "wheels")
    installing.offer(entry(uvx={"package": "acme-agent==1.2.3", "args": ["serve"]}))
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels")}
    done = installing("tiny", env=offline, seconds=90)
    assert (done.code, done.err) == (0, "")
    command = installing.agents["tiny"]["command"]
    assert command.endswith("/agents/tiny/1.0.0/venv/bin/acme-acp")
    assert installing.agents["tiny"]["args"] == ["serve"]
    ran = subprocess.run((command,), check=True, capture_output=True, timeout=120)
    assert ran.stdout == b"it runs\n"


# ── the settings ──────────────────────────────────────────────────────────────────────────────


def test_the_settings_keep_their_order_and_indentation(
    installing: Installing, server: Served
) -> None:
    text = '{\n\t"mcp_servers": [],\n\t"agent_servers": {\n\t\t"mine": {\n\t\t\t"command": "é"\n'
    text += '\t\t}\n\t},\n\t"$schema": "x"\n}\n'
    path = installing.dragoman.write_settings(text)
    path.chmod(0o640)
    installing.offer(entry(binary=binary(server, archive(tiny=PROGRAM))))
    assert installing("tiny").code == 0
    after = path.read_text()
    assert list(json.loads(after)) == ["mcp_servers", "agent_servers", "$schema"]
    assert list(installing.agents) == ["mine", "tiny"]
    assert after.startswith(text[: text.index("\n\t\t}")])
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [found.name for found in path.parent.iterdir()] == ["settings.json"]


def test_settings_that_are_a_link_stay_one(installing: Installing, server: Served) -> None:
    real = installing.dragoman.home / "dotfiles.json"
    real.write_text("{}")
    installing.dragoman.settings.parent.mkdir(parents=True)
    installing.dragoman.settings.symlink_to(real)
    installing.offer(entry(binary=binary(server, archive(tiny=PROGRAM))))
    assert installing("tiny").code == 0
    assert installing.dragoman.settings.is_symlink()
    assert "tiny" in real.read_text()


def test_a_new_version_takes_the_place_of_the_old(installing: Installing, server: Served) -> None:
    target = binary(server, archive(tiny=PROGRAM))
    for version in ("1.0.0", "1.1.0"):
        installing.offer(entry(version=version, binary=target))
        assert installing("tiny").code == 0
    assert "/1.1.0/" in installing.agents["tiny"]["command"]


def test_a_name_that_is_taken_is_not_taken_over(installing: Installing, server: Served) -> None:
    installing.dragoman.write_settings({"agent_servers": {"tiny": {"command": "my-own"}}})
    installing.offer(entry(binary=binary(server, archive(tiny=PROGRAM))))
    done = installing("tiny")
    assert done.code == 2
    assert "already has an agent 'tiny'; choose another name with --name" in done.err
    assert server.asked == []
    assert installing("tiny", "--name", "small").code == 0
    assert list(installing.agents) == ["tiny", "small"]


def test_settings_that_are_broken_are_left_alone(installing: Installing, server: Served) -> None:
    path = installing.dragoman.write_settings('{"agent_servers": [}')
    installing.offer(entry(binary=binary(server, archive(tiny=PROGRAM))))
    done = installing("tiny")
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert path.read_text() == '{"agent_servers": [}'


# ── removing ──────────────────────────────────────────────────────────────────────────────────


def test_removing_takes_the_entry_and_the_files(installing: Installing, server: Served) -> None:
    installing.dragoman.write_settings({"agent_servers": {"mine": {"command": "sh"}}})
    installing.offer(entry(binary=binary(server, archive(tiny=PROGRAM))))
    assert installing("tiny").code == 0
    done = installing.dragoman("agents", "remove", "tiny")
    assert (done.code, done.out) == (0, "removed tiny\n")
    assert list(installing.agents) == ["mine"]
    assert installing.installed == []


def test_files_stay_while_another_name_needs_them(installing: Installing, server: Served) -> None:
    installing.offer(entry(binary=binary(server, archive(tiny=PROGRAM))))
    assert installing("tiny").code == 0
    assert installing("tiny", "--name", "again").code == 0
    assert installing.dragoman("agents", "remove", "tiny").code == 0
    assert Path(installing.agents["again"]["command"]).exists()


def test_of_an_agent_that_was_not_installed_the_entry_alone_is_removed(
    installing: Installing, server: Served
) -> None:
    installing.offer(entry(binary=binary(server, archive(tiny=PROGRAM))))
    assert installing("tiny").code == 0
    added = installing.dragoman("agents", "add", "mine", "--", "sh", "-c", "true")
    assert added.code == 0
    done = installing.dragoman("agents", "remove", "x")
    assert done.code == 2
    assert "no agent 'x'" in done.err
    assert installing.dragoman("agents", "remove", "mine").out == "removed mine\n"
    assert list(installing.agents) == ["tiny"]
    assert Path(installing.agents["tiny"]["command"]).exists()


# ── registries ────────────────────────────────────────────────────────────────────────────────


def test_a_registry_that_will_not_do_is_one_line(installing: Installing) -> None:
    installing.offer(entry("other"))
    done = installing("tiny")
    assert done.code == 2
    assert done.err == "dragoman: there is no agent 'tiny'; known agents: other\n"
    installing.registry.write_text("{")
    done = installing("tiny")
    assert done.code == 2
    assert "expected the JSON of an ACP registry" in done.err


def test_a_registry_that_is_not_there_is_one_line(installing: Installing) -> None:
    done = installing("tiny", "--registry", "/no/such/registry.json")
    assert done.code == 2
    assert "expected a readable registry file (No such file or directory)" in done.err
