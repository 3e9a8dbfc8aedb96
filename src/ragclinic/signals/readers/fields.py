"""Values of JSON objects as the types a format promises; `ValueError` says what stood there instead."""

import math
from collections.abc import Mapping
from typing import Any


def obj(value: Any, what: str) -> Mapping[str, Any]:
    """The value as an object."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} is {kind(value)}; expected an object")
    return value


def items(value: Any) -> list[Any]:
    """The value as a list; anything else is an empty one."""
    return value if isinstance(value, list) else []


def text(source: Mapping[str, Any], *names: str) -> str | None:
    """The first of these fields that holds a text, or a number written as one."""
    for name in names:
        value = source.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
    return None


def whole(source: Mapping[str, Any], *names: str) -> int:
    """The first of these fields that is there, as a whole number; 0 where none is.

    Raises:
        ValueError: it is there and is no whole number.
    """
    for name in names:
        value = source.get(name)
        if value is None or value == "":
            continue
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(f"{name} is {kind(value)}; expected a whole number")
        try:
            return int(value)
        except (ValueError, OverflowError):
            pass
        try:
            return int(float(value))
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{name} is {str(value)[:40]!r}; expected a whole number") from error
    return 0


def number(value: Any) -> float | None:
    """The value as a finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def hex_id(value: Any, digits: int) -> str:
    """An identifier in lower-case hexadecimal, padded to `digits`; a UUID without its dashes."""
    if not isinstance(value, str | int) or isinstance(value, bool):
        return ""
    plain = str(value).lower().removeprefix("0x").replace("-", "")
    return plain.zfill(digits) if plain else ""


def kind(value: Any) -> str:
    """A few words for what a JSON value is."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "nothing"}
    return next((name for type_, name in names.items() if isinstance(value, type_)), "a number")
