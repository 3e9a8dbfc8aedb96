"""The two word tables agree, every word is used, and foreign text cannot act."""

import doctest
import string
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragclinic import report
from ragclinic.diagnosis.causes import CAUSES
from ragclinic.report import bars, numbers, text
from ragclinic.report.text import Lang, Words, setting, table, visible

NAME_GROUPS = ("axis", "basis", "cause", "fact", "role", "run", "stage", "verdict", "verdict_word", "why")
"""Groups that are looked up by an id of the data."""


def places(words: Mapping[str, str]) -> dict[str, set[str | None]]:
    return {
        key: {name for _, name, _, _ in string.Formatter().parse(value)} - {None} for key, value in words.items()
    }


def test_both_languages_have_the_same_keys_and_places() -> None:
    """A sentence missing in one language, or missing a number, fails here and not at a user's."""
    assert places(table("en")) == places(table("zh"))


def test_every_word_is_used() -> None:
    """A key that no code and no template names is a leftover."""
    folder = Path(report.__file__).parent
    sources = "".join(p.read_text("utf-8") for p in folder.rglob("*") if p.suffix in (".py", ".html"))
    named = [key for key in table("en") if key.split(".")[0] not in NAME_GROUPS]
    computed = {
        "compare.better",
        "compare.worse",
        "compare.not-shown",
        "heat.ideal",
        "heat.coupled",
        "heat.contended",
    }
    computed |= {"compare.total", "compare.ttft", "page.before", "page.after"}
    computed |= {"imported.format", "imported.versions", "imported.signals"}
    assert [
        key for key in named if f'"{key}"' not in sources and f"'{key}'" not in sources and key not in computed
    ] == []


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_cause_has_a_title(lang: Lang) -> None:
    """Each cause that can be found, and each it leads to, is told in words."""
    ids = {id_ for cause in CAUSES for id_ in (cause.id, *cause.leads_to)}
    assert len(ids) >= len(CAUSES)
    assert {id_ for id_ in ids if f"cause.{id_}" not in table(lang)} == set()


def test_an_id_without_a_word_stands_for_itself() -> None:
    """A new stage or cause is shown by its id until somebody translates it."""
    assert Words("zh").name("stage", "queue") == "排队"
    assert Words("zh").name("stage", "brew-coffee") == "brew-coffee"


@given(st.text())
def test_visible_text_holds_nothing_that_acts(hostile: str) -> None:
    """Terminals, encodings and reading order are safe from whatever a document holds."""
    shown = visible(hostile)
    assert visible(shown) == shown
    shown.encode("utf-8")
    assert not {c for c in shown if ord(c) < 32} - {"\n", "\t"}
    assert not set(shown) & set("\x1b\x7f\x9b\u202e\u2066")


def test_ordinary_text_is_left_as_it_is() -> None:
    """Tabs, line ends, Chinese, accents and emoji are text."""
    plain = "a\tb\n预填充 é 👩‍🔬 <b>"
    assert visible(plain) == plain


def test_settings_are_shown_as_toml() -> None:
    """What is shown can be pasted into a prescription."""
    assert setting("cache.ttl_s", 900.0) == "cache.ttl_s = 900.0"
    assert setting("compiler.enabled", True) == "compiler.enabled = true"
    assert setting("llm.model", 'a"b') == 'llm.model = "a\\"b"'


@pytest.mark.parametrize("module", [numbers, text, bars])
def test_examples_in_docstrings_are_true(module: ModuleType) -> None:
    """The doctests of the module pass."""
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)
