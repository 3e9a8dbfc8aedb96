"""Elements of JSON come out of any layout, one document or many lines, and of what is broken the rest is read."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragclinic.signals.readers import elements as room
from ragclinic.signals.readers import json_parser
from ragclinic.signals.readers.elements import Element, elements
from ragclinic.signals.readers.reader import Origin, ReadLog

DOCUMENT = {"head": {"name": "h"}, "groups": [{"of": "a", "spans": [{"n": 1}, {"n": 2}]}, {"spans": [{"n": 3}]}]}
WANTED = {"groups.item.spans.item"}


@pytest.fixture(params=["whole", "piecewise"])
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both routes: what fits into memory is parsed at once, the rest piece by piece."""
    if request.param == "piecewise":
        monkeypatch.setattr(room, "WHOLE_BYTES", 8)
        monkeypatch.setattr(room, "PIECE_BYTES", 16)


def found(data: bytes, wanted: set[str] = WANTED, marks: tuple[str, ...] = ()) -> tuple[list[Element], ReadLog]:
    """The elements and the account."""
    log = ReadLog()
    return list(elements(io.BytesIO(data), Origin("f"), log, wanted, marks)), log


def numbers(data: bytes) -> tuple[list[object], int]:
    """The numbers of the spans that were found, and how much was bad."""
    got, log = found(data)
    return [e.value["n"] for e in got], log.bad_rows


LAYOUTS = {
    "compact": json.dumps(DOCUMENT),
    "indented": json.dumps(DOCUMENT, indent=2),
    "a list": json.dumps([DOCUMENT]),
    "a list in a list": json.dumps([[DOCUMENT]], indent=1),
    "an entry a line": f"[\n{json.dumps(DOCUMENT)}\n]\n",
    "blank lines": f"\n\n{json.dumps(DOCUMENT)}\n\n",
    "CRLF": json.dumps(DOCUMENT, indent=2).replace("\n", "\r\n"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_elements(layout: str, route: None) -> None:
    assert numbers(LAYOUTS[layout].encode()) == ([1, 2, 3], 0)


def test_lines_one_object_each_give_all(route: None) -> None:
    assert numbers(3 * (json.dumps(DOCUMENT).encode() + b"\n")) == ([1, 2, 3] * 3, 0)


def test_a_broken_line_costs_itself_and_gives_its_place(route: None) -> None:
    line = json.dumps(DOCUMENT).encode()
    got, log = found(line + b"\n" + b'{"groups": [{"spans": [}\n' + line + b"\n")
    assert [e.value["n"] for e in got] == [1, 2, 3, 1, 2, 3]
    assert [(b.kind, b.count, str(b.first)) for b in log.bad] == [("unreadable JSON", 1, "f:2")]


def test_a_line_that_was_cut_off_does_not_cost_the_next(route: None) -> None:
    line = json.dumps(DOCUMENT).encode()
    assert numbers(line[:-20] + b"\n" + line + b"\n") == ([1, 2, 1, 2, 3], 1)


def test_a_document_that_was_cut_off_gives_what_came_before(route: None) -> None:
    assert numbers(json.dumps(DOCUMENT, indent=1).encode()[:-20]) == ([1, 2], 1)


def test_marks_tell_where_an_object_begins_before_what_is_in_it(route: None) -> None:
    got, _ = found(json.dumps(DOCUMENT).encode(), {"groups.item.of"}, ("groups.item",))
    assert [(e.path, e.value) for e in got] == [
        ("groups.item", None),
        ("groups.item.of", "a"),
        ("groups.item", None),
    ]


def test_an_endless_string_costs_one_count_and_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "WHOLE_BYTES", 1000)
    monkeypatch.setattr(json_parser, "ELEMENT_BYTES", 100_000)
    line = json.dumps(DOCUMENT).encode() + b"\n"
    got, log = found(line + b'{"x": "' + b"a" * 5_000_000 + b'"}\n' + line)
    assert [e.value["n"] for e in got] == [1, 2, 3] * 2
    assert [(b.count, b.found) for b in log.bad] == [(1, "a value of more than 100000 bytes; expected JSON")]


def test_what_is_nested_a_hundred_deep_is_read(route: None) -> None:
    deep: object = 0
    for _ in range(100):
        deep = [deep]
    assert numbers(json.dumps({"groups": [{"spans": [{"n": 1, "deep": deep}]}]}).encode()) == ([1], 0)


def test_what_is_nested_without_end_is_counted_and_the_rest_read(route: None) -> None:
    line = json.dumps(DOCUMENT).encode() + b"\n"
    data = line + b'{"groups": ' + b"[" * 5000 + b"]" * 5000 + b"}\n" + line
    assert numbers(data) == ([1, 2, 3] * 2, 1)


def test_bytes_that_are_no_utf_8_are_counted_and_the_rest_read(route: None) -> None:
    line = json.dumps(DOCUMENT).encode() + b"\n"
    assert numbers(line + b'{"x": "\xff\xfe"}\n' + line) == ([1, 2, 3] * 2, 1)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.recursive(
            st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
            lambda s: st.lists(s) | st.dictionaries(st.text(), s),
            max_leaves=8,
        ),
        max_size=5,
    )
)
def test_both_routes_agree_on_any_json(values: list[object]) -> None:
    data = "\n".join(json.dumps({"groups": [{"spans": [v]}]}) for v in values).encode()
    whole, _ = found(data)
    pieces = room._Pieces(
        io.BufferedReader(io.BytesIO(data)),
        Origin("f"),
        ReadLog(),
        json_parser.Paths(frozenset(WANTED), frozenset()),
    )
    assert [e.value for e in pieces.elements(1)] == [e.value for e in whole]
