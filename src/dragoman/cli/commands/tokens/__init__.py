"""`dragoman tokens`: lists and revokes the access tokens of paired devices."""

from __future__ import annotations

import argparse

from dragoman.cli.options import add_json_option
from dragoman.cli.parsers import Actions, run_action

_EXAMPLES = """\
  dragoman tokens revoke phone
  dragoman tokens revoke 3f9c12ab04de

A device that uses the token is disconnected at once. `dragoman serve --pair`
pairs a device."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = Actions(parser, __name__, stored=True)
    listing = actions.add("list", "list access tokens", module="token_actions")
    listing.add_argument("--all", action="store_true", help="also those that were revoked")
    add_json_option(listing.add_argument)
    revoking = actions.add("revoke", "revoke access tokens", _EXAMPLES, module="token_actions")
    revoking.add_argument("token", metavar="TOKEN", nargs="+", help="id or name of a token")


run = run_action
