"""What kind of thing a question asks for, and whether a sentence holds such a thing. English and Chinese."""

import re
from typing import NamedTuple

_NUMBER_ASKED = re.compile(
    r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|time|age|number|percent\w*|temperature|size|version)\b"
    r"|\bhow (?:many|much|old|long|far|tall|high|big|deep|often|fast|large|heavy)\b|\bnumber of\b"
    r"|什[么麼][时時]|何[时時]|[哪几幾](?:一)?[年月日天岁歲届屆]|多[少久大长長高远遠重深]|第[几幾]|[几幾][个個位名座次章部种種层層倍]"
    r"|[时時][间間]|日期|百分",
    re.IGNORECASE,
)
_NAME_ASKED = re.compile(
    r"\bwho(?:se|m)?\b|\bwhere\b|\b(?:name|location) of\b"
    r"|\b(?:what|which) (?:city|country|state|place|town|company|team|person|actor|actress)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d|[一二三四五六七八九十百千万萬亿億两兩]+[年月日号號个個位名次人元岁歲届屆种種倍米里]")
_NAME = re.compile(r"(?<=[^.!?\s] )[A-Z][\w'’-]+")
NAMES_ENOUGH = 4
"""A sentence with this many names counts in full."""


class Asked(NamedTuple):
    """Whether a question asks for a number or a date, for a person, a place or another name."""

    number: bool
    name: bool


def asked(question: str) -> Asked:
    """Give what a question asks for; both are False where its words do not tell."""
    return Asked(bool(_NUMBER_ASKED.search(question)), bool(_NAME_ASKED.search(question)))


def holds_number(text: str) -> bool:
    """Tell whether a text holds a number in figures or, in Chinese, in characters before a measure word."""
    return bool(_NUMBER.search(text))


def names_held(text: str) -> float:
    """Give 0 to 1 for none to many capitalised words inside sentences; scripts without capitals give 0."""
    return min(NAMES_ENOUGH, len(_NAME.findall(text))) / NAMES_ENOUGH
