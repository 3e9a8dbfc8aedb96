"""The rooms import downwards only."""

from importlinter.cli import lint_imports


def test_a_room_imports_only_from_rooms_below_it() -> None:
    assert lint_imports(no_cache=True) == 0
