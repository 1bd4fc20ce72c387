"""Installing by the rules: what is named in a registry cannot reach beyond its own folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.agents.install.installer import agents_directory, install, installed_id
from dragoman.agents.install.registry import Distribution, Package, RegistryAgent, platform_key
from dragoman.errors import InstallFailed


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "/nowhere")
    return tmp_path / "home"


def tell(words: str) -> None:
    pass


def agent(distribution: Distribution) -> RegistryAgent:
    return RegistryAgent("tiny", "1.0.0", distribution)


@pytest.mark.parametrize(
    "package",
    ["--global", "-g", "../evil", "git+https://x/y", "a b", "a@latest", "/etc", "", "@/x", "a@"],
)
def test_what_is_no_npm_package_is_refused(package: str, home: Path) -> None:
    with pytest.raises(InstallFailed, match="is not the name of an npm package"):
        install(agent(Distribution(npx=Package(package))), allow_scripts=False, tell=tell)
    assert list((home / "agents").iterdir()) == []


@pytest.mark.parametrize(
    "package",
    ["--index-url=x", "./evil", "a @ https://x/y.whl", "a>=1", "a==1;x", "", "a[b", "-r x"],
)
def test_what_is_no_pypi_package_is_refused(package: str, home: Path) -> None:
    with pytest.raises(InstallFailed, match="is not the name of a PyPI package"):
        install(agent(Distribution(uvx=Package(package))), allow_scripts=False, tell=tell)
    assert list((home / "agents").iterdir()) == []


def test_nothing_for_this_platform_is_a_sentence() -> None:
    with pytest.raises(InstallFailed, match=f"tiny is not available for {platform_key()}"):
        install(agent(Distribution()), allow_scripts=False, tell=tell)


def test_a_command_of_ours_is_known_by_its_place(tmp_path: Path) -> None:
    ours = agents_directory() / "tiny" / "1.0.0" / "bin" / "tiny"
    assert installed_id(str(ours)) == "tiny"
    assert installed_id(str(tmp_path / "elsewhere")) is None
    assert installed_id("tiny") is None
    assert installed_id(str(agents_directory())) is None
