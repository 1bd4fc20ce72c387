"""What people install: the wheel has the page in it and needs no Node."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parent.parent
PAGE = "dragoman/web/static/index.html"

pytestmark = pytest.mark.skipif(
    not (ROOT / "src" / PAGE).exists(), reason="the page is not built: make it with `make dist`"
)


def wheel(folder: Path) -> Path:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=600)
    [made] = folder.glob("*.whl")
    return made


def test_the_wheel_has_everything_the_page_asks_for(tmp_path: Path) -> None:
    with ZipFile(wheel(tmp_path)) as content:
        names = set(content.namelist())
        page = content.read(PAGE).decode()
    assets = re.findall(r'(?:src|href)="\./([^"]+)"', page)
    assert assets
    assert {f"dragoman/web/static/{asset}" for asset in assets} <= names
    assert "dragoman/py.typed" in names


@pytest.mark.soak
def test_the_wheel_serves_its_page_in_an_environment_without_node(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / "bin"
    install = [str(programs / "pip"), "install", "--quiet", str(wheel(tmp_path))]
    subprocess.run(install, check=True, timeout=300)
    environ = os.environ | {"PATH": str(programs), "DRAGOMAN_HOME": str(tmp_path / "home")}
    serve = [str(programs / "dragoman"), "serve"]
    with subprocess.Popen(serve, env=environ, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split("#")[0]
            with urllib.request.urlopen(address, timeout=30) as answer:
                assert b"<title>Dragoman</title>" in answer.read()
        finally:
            server.terminate()
