"""Roughly the tokens of a text, where the model's tokenizer is unknown: foreign traces hold text, not tokens.

A Chinese, Japanese or Korean character is one unit, a word is one for each six letters, other signs are one each:
within a fifth of what common tokenizers count. Equal texts have equal units, so a shared beginning is found.
"""

import hashlib
import re

_CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_UNIT = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]{{1,6}}|[^\w\s]|_")


def units(text: str) -> list[str]:
    """The pieces of a text that count as tokens."""
    return _UNIT.findall(text)


def unit_keys(text: str) -> tuple[int, ...]:
    """The pieces as numbers, equal pieces as equal numbers, to compare two prompts."""
    return tuple(_key(unit) for unit in units(text))


def _key(unit: str) -> int:
    digest = hashlib.blake2b(unit.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
