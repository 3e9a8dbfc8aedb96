"""OTLP JSON's lists of keys and typed values as plain mappings."""

from collections.abc import Mapping
from typing import Any

from ragclinic.signals.readers.fields import items


def attributes_of(pairs: Any) -> dict[str, Any]:
    """OTLP's list of keys and typed values as a mapping."""
    return {
        str(pair["key"]): value_of(pair.get("value"))
        for pair in items(pairs)
        if isinstance(pair, Mapping) and "key" in pair
    }


def value_of(value: Any) -> Any:
    """A typed value (`{"stringValue": ..}`) as plain JSON."""
    if not isinstance(value, Mapping) or not value:
        return None
    name, inner = next(iter(value.items()))
    match name.replace("_", "").lower():
        case "intvalue":
            return int(inner) if isinstance(inner, int | str) else inner
        case "doublevalue":
            return float(inner) if isinstance(inner, int | float | str) else inner
        case "arrayvalue":
            return [
                value_of(entry) for entry in items(inner.get("values") if isinstance(inner, Mapping) else None)
            ]
        case "kvlistvalue":
            return attributes_of(inner.get("values") if isinstance(inner, Mapping) else None)
        case _:
            return inner
