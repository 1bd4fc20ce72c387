"""Our content and facts as ACP's own JSON: what the data parts and tool outputs of a stream carry.

Optional fields are left out where there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.session import content as c
from dragoman.session import events as e
from dragoman.session import facts as f
from dragoman.session.permission_options import in_words
from dragoman.session.state import Terminal
from dragoman.ui_stream.chunks import Json

TERMINAL_TAIL = 16 * 1024
"""Characters of a terminal's output that are shown; a page sends its messages back each time."""


def given(**fields: Any) -> Json:
    """Only what is there."""
    return {name: value for name, value in fields.items() if value is not None}


def whole(fact: msgspec.Struct) -> Json:
    """Every field that says something, under ACP's name for it."""
    return given(**{_acp_name(name): getattr(fact, name) for name in fact.__struct_fields__})


def _acp_name(name: str) -> str:
    head, *more = name.split("_")
    return "_meta" if name == "meta" else head + "".join(map(str.capitalize, more))


def content(part: c.Content) -> Json:
    match part:
        case c.Resource():
            more = given(annotations=part.annotations, _meta=part.meta)
            return {"type": "resource", "resource": _resource(part)} | more
        case c.UnknownContent():
            return raw(part.kind, part.raw)
        case _:
            return {"type": part.__struct_config__.tag} | whole(part)


def _resource(part: c.Resource) -> Json:
    text = part.content if part.blob is not None else part.content or ""
    return given(
        uri=part.uri,
        mimeType=part.mime_type,
        text=text,
        blob=part.blob,
        _meta=part.resource_meta,
    )


def raw(kind: str, text: str) -> Json:
    """What this version does not know, as it came; what is not a JSON object, as text."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError:
        return {"type": kind, "raw": text}


def tool_content(items: Sequence[c.ToolContent]) -> list[Json]:
    return [_tool_item(item) for item in items]


def _tool_item(item: c.ToolContent) -> Json:
    match item:
        case c.ContentItem():
            found: Json = {"type": "content", "content": content(item.content)}
        case c.Diff():
            found = _diff(item)
        case c.TerminalItem():
            found = {"type": "terminal", "terminalId": item.terminal_id}
        case _:
            return raw(item.kind, item.raw)
    return found | given(_meta=item.meta)


def _diff(item: c.Diff) -> Json:
    if item.operation is None:
        return given(
            type="diff",
            path=item.path,
            oldText=item.old_text,
            newText=item.new_text,
            replaces=item.replaces,
        )
    change = given(
        operation=item.operation,
        path=item.path,
        oldPath=item.old_path,
        fileType=item.file_type,
        mimeType=item.mime_type,
    )
    patch = None if item.patch is None else {"format": "git_patch", "text": item.patch}
    return given(type="diff", path=item.path, changes=[change], patch=patch, replaces=item.replaces)


def locations(places: Sequence[c.Location]) -> list[Json]:
    return [whole(place) for place in places]


def plan(event: e.PlanUpdated) -> Json:
    if event.markdown is not None or event.uri is not None:
        return given(planId=event.plan_id or None, content=event.markdown, uri=event.uri)
    return given(planId=event.plan_id or None, entries=[whole(step) for step in event.steps])


def commands(found: Sequence[f.Command]) -> list[Json]:
    return [
        given(
            name=command.name,
            description=command.description,
            input=None if command.hint is None else {"hint": command.hint},
            _meta=command.meta,
        )
        for command in found
    ]


def modes(found: Sequence[f.Mode]) -> list[Json]:
    return [whole(mode) for mode in found]


def config_options(options: Sequence[f.ConfigOption]) -> list[Json]:
    return [_config_option(option) for option in options]


def _config_option(option: f.ConfigOption) -> Json:
    choices = option.choices
    return given(
        id=option.id,
        name=option.name,
        description=option.description,
        category=option.category,
        type="boolean" if choices is None else "select",
        currentValue=option.value,
        options=None if choices is None else [whole(choice) for choice in choices],
        _meta=option.meta,
    )


def usage(found: f.ContextUsage) -> Json:
    return given(used=found.used, size=found.size, cost=_cost(found.cost))


def _cost(cost: f.Cost | None) -> Json | None:
    return None if cost is None else {"amount": cost.amount, "currency": cost.currency}


def tokens(found: f.TokenUsage) -> Json:
    said = whole(found)
    return {f"{name}Tokens": count for name, count in said.items() if isinstance(count, int)}


def permission_options(options: Sequence[f.PermissionOption]) -> list[Json]:
    return [
        given(
            optionId=o.id,
            name=o.name,
            kind=o.kind,
            words=ours.words,
            warning=ours.remark if ours.warns else None,
            consequence=o.consequence,
            _meta=o.meta,
        )
        for o, ours in zip(options, in_words(options), strict=True)
    ]


def terminal(found: Terminal) -> Json:
    output = found.output
    return given(
        terminalId=found.id,
        command=found.argv or ([found.command] if found.command else None),
        cwd=found.cwd or None,
        output=output[-TERMINAL_TAIL:],
        truncated=True if len(output) > TERMINAL_TAIL else None,
        running=found.running,
        exitCode=found.exit_code,
        signal=found.signal,
    )
