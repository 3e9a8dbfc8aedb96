"""Which sentence another one is hard to understand without."""

import re
from collections.abc import Sequence

from ragclinic.context.prepared import Sentence

_PRONOUN = re.compile(
    r"(?:it|its|this|that|these|those|they|their|them|he|his|she|her|such|both|neither|either|otherwise|thus|therefore"
    r"|however|instead|also|in this case|in that case|the (?:former|latter|same))\b(?!['’]s\b.*\?)",
    re.IGNORECASE,
)
_PRONOUN_ZH = re.compile(
    r"[“「『（(]?(?:[它他她牠祂]|[这這那该該此其](?!外|余|餘)|上述|前者|后者|後者|因此|所以|但是?|然而|不过|不過|否则|否則|同时|同時|另外)"
)
_INTRODUCES = (":", "：")


def leads(sentences: Sequence[Sentence]) -> list[tuple[int, ...]]:
    """Give for each sentence of one passage the earlier ones it leans on, the nearest first.

    That is the sentence before one that begins with a pronoun, the line that ends with a colon over code, a table
    or a list, and the heading over all of them.
    """
    found: list[tuple[int, ...]] = []
    heading: int | None = None
    introduction: int | None = None
    for number, sentence in enumerate(sentences):
        if sentence.kind == "heading":
            found.append(())
            heading, introduction = number, None
            continue
        leans: list[int] = []
        if sentence.kind == "prose":
            if number and sentences[number - 1].kind != "heading" and _begins_with_pronoun(sentence.content.text):
                leans.append(number - 1)
            introduction = number if sentence.content.text.endswith(_INTRODUCES) else None
        elif introduction is not None:
            leans.append(introduction)
        if heading is not None:
            leans.append(heading)
        found.append(tuple(leans))
    return found


def _begins_with_pronoun(text: str) -> bool:
    return bool(_PRONOUN.match(text) or _PRONOUN_ZH.match(text))
