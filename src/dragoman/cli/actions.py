"""Commands that have actions, as `agents list` and `agents doctor`."""

from __future__ import annotations

import argparse

from dragoman.cli import options


class Actions:
    """The actions of one command; what was chosen is `options.action`."""

    def __init__(self, parser: argparse.ArgumentParser, *, stored: bool = False) -> None:
        """With `stored` each takes `--store`."""
        self._stored = stored
        self._actions = parser.add_subparsers(
            dest="action", metavar="ACTION", required=True, title="actions"
        )

    def add(self, name: str, text: str, examples: str = "") -> argparse.ArgumentParser:
        """One more; `text` says what it does, `examples` are lines for its help."""
        parser = self._actions.add_parser(
            name,
            help=text,
            description=f"{text[:1].upper()}{text[1:]}.",
            epilog=f"examples:\n{examples}" if examples else None,
            formatter_class=options.formatter,
            allow_abbrev=False,
        )
        # Without a default of its own, so that `agents --debug list` keeps what was said there.
        parser.add_argument(
            "--debug",
            action="store_true",
            default=argparse.SUPPRESS,
            help="log to standard error, tracebacks included",
        )
        if self._stored:
            options.add_store_option(parser, "use the store in")
        return parser
