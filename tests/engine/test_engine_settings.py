"""Settings are read once, and a bad one is named with what would be right."""

from pathlib import Path

import pytest

from ragclinic.engine.settings import Settings, load, preset
from ragclinic.errors import BadInput


def test_as_found_is_what_most_teams_have() -> None:
    found = preset("as_found")
    assert (found.chunking.size_tokens, found.chunking.overlap_tokens, found.retrieval.top_k) == (512, 128, 6)
    assert (found.prompt.order, found.delivery.stream, found.cache.answers) == ("volatile-first", False, False)
    assert found.compiler.enabled is False


def test_changes_go_by_dotted_name_and_leave_the_rest() -> None:
    found = preset("as_found").with_changes({"delivery.stream": True, "compiler.budget_tokens": 300})
    assert (found.delivery.stream, found.compiler.budget_tokens, found.retrieval.top_k) == (True, 300, 6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[retrieval]\ntop_kk = 3\n",
            "unknown setting retrieval.top_kk; the nearest known one is retrieval.top_k",
        ),
        ("[retreival]\ntop_k = 3\n", "unknown setting retreival; the nearest known one is retrieval"),
        ("[retrieval]\ntop_k = 0\n", "retrieval.top_k = 0: .*mend the value"),
        ("[retrieval\n", "not TOML"),
    ],
)
def test_a_bad_file_is_named_with_the_mend(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    with pytest.raises(BadInput, match=message) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="expected a TOML file of settings; check the path"):
        load(tmp_path / "none.toml")


def test_every_setting_has_a_dotted_name() -> None:
    flat = Settings().flat()
    assert Settings().with_changes(flat) == Settings()
