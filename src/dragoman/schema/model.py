"""What the generated structs of `v1` and `v2` are built on.

Knows how a struct, a union and a method are described; nothing of decoding (see `codec`) and
nothing of any protocol version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

T = TypeVar("T")


def wire_name(attribute: str) -> str:
    """The JSON name of an attribute: `tool_call_id` is `toolCallId`, `meta` is `_meta`."""
    if attribute == "meta":
        return "_meta"
    first, *rest = attribute.split("_")
    return first + "".join(word.capitalize() for word in rest)


class Model(
    msgspec.Struct,
    kw_only=True,
    omit_defaults=True,
    repr_omit_defaults=True,
    rename=wire_name,
    gc=False,
):
    """The root of every struct; the three tuples name the attributes the schema is lenient on.

    What was JSON holds no cycles, and so nothing for the garbage collector to look for.
    """

    __default_on_error__: ClassVar[tuple[str, ...]] = ()
    __default_on_null__: ClassVar[tuple[str, ...]] = ()
    __skip_invalid_items__: ClassVar[tuple[str, ...]] = ()


class Record(Model, kw_only=True):
    """A whole value: an optional field that was omitted and one that was null are the same."""

    meta: dict[str, Any] | None = None


class Patch(Model, kw_only=True):
    """A change to a value known before: `UNSET` leaves a field as it was, None clears it."""

    meta: dict[str, Any] | UnsetType | None = UNSET


class Unknown:
    """A union's variant this schema does not have: its kind, and its JSON as it was received.

    Not a struct, because only what msgspec does not know can be encoded as raw JSON.
    """

    __match_args__ = ("kind",)
    __slots__ = ("kind", "raw")

    def __init__(self, kind: str, raw: bytes) -> None:
        self.kind = kind
        self.raw = raw

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Unknown):
            return NotImplemented
        return self.kind == other.kind and self.raw == other.raw

    def __hash__(self) -> int:
        return hash((self.kind, self.raw))

    def __repr__(self) -> str:
        return f"Unknown(kind={self.kind!r}, raw={self.raw!r})"


class Choice:
    """A union msgspec cannot decode by itself: not every variant has a tag to be known by."""

    variants: ClassVar[tuple[type[Model], ...]]


# A type checker sees plain unions. At run time `Unknown` is left out, since only the second look
# of `codec` builds one, and a union without tags is a `Choice`, which `codec` resolves.
if TYPE_CHECKING:
    Tagged: TypeAlias = T | Unknown
    PartlyTagged: TypeAlias = T | Unknown
    Untagged: TypeAlias = T
else:

    class Tagged:
        """Every variant has a tag."""

        def __class_getitem__(cls, variants: Any) -> Any:
            return variants

    class Untagged:
        """No variant has a tag: the first one whose required fields are present is meant."""

        def __class_getitem__(cls, variants: Any) -> Any:
            return type("Choice", (Choice,), {"variants": variants.__args__})

    PartlyTagged = Untagged


class Method(msgspec.Struct, frozen=True):
    """A method, who answers it, and the types of its params and result."""

    name: str
    side: Literal["agent", "client", "protocol", "proxy"]
    kind: Literal["request", "notification"]
    params: type[Model]
    result: type[Any] | None
    stable: bool


def by_name(*methods: Method) -> dict[str, Method]:
    return {method.name: method for method in methods}
