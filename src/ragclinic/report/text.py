"""The words of a report: one table per language with equal keys, and what makes foreign text safe to show."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Literal

import tomlkit

from ragclinic.diagnosis.say import in_language

Lang = Literal["en", "zh"]

_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]"
)
"""Controls (a terminal would obey them), lone surrogates (no encoding takes them), marks that reverse text."""


def visible(text: str) -> str:
    """The text with every character that would act instead of show replaced by U+FFFD; line ends become `\\n`."""
    return _UNSHOWABLE.sub("\ufffd", text.replace("\r\n", "\n"))


def setting(name: str, value: object) -> str:
    """A setting as it stands in a prescription.

    >>> setting("prompt.order", "stable-first")
    'prompt.order = "stable-first"'
    """
    return visible(f"{name} = {tomlkit.item(value).as_string()}")


class Words:
    """The table of one language; calling it fills a sentence's `{places}`.

    >>> Words("en")("page.objective", slo="8.0 s")
    'objective 8.0 s'
    """

    def __init__(self, lang: Lang) -> None:
        self.lang = lang
        self._table = table(lang)

    def __call__(self, key: str, **values: str) -> str:
        """The sentence under this key; an unknown key raises `KeyError`."""
        return self._table[key].format(**values)

    def said(self, sentence: str) -> str:
        """A sentence of the diagnosis in this language where it knows how, safe to show."""
        return visible(in_language(sentence, self.lang))

    def all_said(self, sentences: Iterable[str]) -> str:
        """Sentences one after the other; Chinese ones need no space between them."""
        return ("" if self.lang == "zh" else " ").join(map(self.said, sentences))

    def name(self, group: str, id_: str) -> str:
        """The word for an id (a stage, a role, a cause ...), or the id itself where the table has none."""
        return self._table.get(f"{group}.{id_}", id_)


@cache
def table(lang: Lang) -> Mapping[str, str]:
    """All words of a language by dotted key."""
    text = resources.files("ragclinic.report").joinpath("i18n", f"{lang}.toml").read_text("utf-8")
    return dict(_flat(tomllib.loads(text)))


def _flat(groups: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in groups.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value)
