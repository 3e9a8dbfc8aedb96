from pathlib import Path

import pytest

from ragclinic.signals.readers import json_fields
from ragclinic.signals.vocabulary import STATES, State

DOC = Path(__file__).parents[2] / "docs/signals-metrics.md"


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.id)
def test_the_published_table_of_states_holds_every_name(state: State) -> None:
    row = next(line for line in DOC.read_text("utf-8").splitlines() if line.startswith(f"| `{state.id}` |"))
    assert all(f"`{alias.name}`" in row for alias in state.aliases)


def test_the_published_list_of_fields_is_the_one_in_use() -> None:
    text = DOC.read_text("utf-8")
    names = {*json_fields.TEXTS, *json_fields.TIMES, *json_fields.COUNTS, *json_fields.DURATIONS}
    assert all(f"`{name}`" in text for name in names)
