"""What `dragoman acp --print-config` prints: the entry with which each editor starts us."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

NAME = "Dragoman"


def _entry(command: Sequence[str], **more: str) -> str:
    fields: dict[str, Any] = {**more, "command": command[0], "args": list(command[1:]), "env": {}}
    return json.dumps({"agent_servers": {NAME: fields}}, indent=2)


def _zed(command: Sequence[str]) -> str:
    return _entry(command, type="custom")


def _jetbrains(command: Sequence[str]) -> str:
    return _entry(command)


def _neovim(command: Sequence[str]) -> str:
    arguments = ", ".join(_quoted(word) for word in command[1:])
    return f"""\
require("avante").setup({{
  provider = "dragoman",
  acp_providers = {{
    ["dragoman"] = {{ command = {_quoted(command[0])}, args = {{ {arguments} }} }},
  }},
}})"""


def _emacs(command: Sequence[str]) -> str:
    arguments = " ".join(_quoted(word) for word in command[1:])
    return f"""\
(with-eval-after-load 'agent-shell
  (add-to-list
   'agent-shell-agent-configs
   (agent-shell-make-agent-config
    :identifier 'dragoman
    :mode-line-name "{NAME}"
    :buffer-name "{NAME}"
    :shell-prompt "{NAME}> "
    :shell-prompt-regexp "{NAME}> "
    :client-maker
    (lambda (buffer)
      (acp-make-client :command {_quoted(command[0])}
                       :command-params '({arguments})
                       :context-buffer buffer)))))"""


def _quoted(word: str) -> str:
    """A string of Lua and of Emacs Lisp: both read these escapes."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


EDITORS: dict[str, Callable[[Sequence[str]], str]] = {
    "zed": _zed,
    "jetbrains": _jetbrains,
    "neovim": _neovim,
    "emacs": _emacs,
}
