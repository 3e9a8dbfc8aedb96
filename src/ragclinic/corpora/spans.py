"""Finding a sentence in a text that breaks its lines elsewhere."""

import re


def find_span(text: str, wanted: str) -> str | None:
    """The part of `text` that reads like `wanted` whatever the white space, or None.

    A line may also break after a hyphen: `built-in` is found in `built-` + newline + `in`.
    """
    words = [re.escape(word).replace(r"\-", r"\-\s*") for word in wanted.split()]
    found = re.search(r"\s+".join(words), text) if words else None
    return found.group() if found else None
