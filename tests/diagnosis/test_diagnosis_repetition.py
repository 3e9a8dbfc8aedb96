"""What a prompt says twice, and why: neighbours' overlap, or copies."""

from dataclasses import replace

import pytest
from diagnosis_builders import Ask, Piece, distinct, hashed, make_seen, passage
from diagnosis_patients import in_a_row

from ragclinic.diagnosis.pieces import context_tokens, keyed, pieces
from ragclinic.diagnosis.repetition import Repetition, repetition
from ragclinic.signals.seen import Request


def asked(*chunks: Piece) -> Request:
    return make_seen([Ask(chunks)]).requests[0]


def said(request: Request) -> Repetition:
    found = repetition(request)
    assert found is not None
    return found


def test_neighbours_repeat_their_overlap_once_for_each_border() -> None:
    found = said(asked(*in_a_row(1, count=4, words=150, overlap=30)))
    assert found.neighbour_tokens == pytest.approx(3 * 30, rel=0.05)
    assert found.duplicate_tokens == 0.0
    assert found.redundancy > 0.05
    assert found.redundancy_apart < 0.01


def test_a_border_of_two_thirds_is_still_a_border_and_no_copy() -> None:
    found = said(asked(*in_a_row(1, count=3, words=150, overlap=100)))
    assert found.duplicate_tokens == 0.0
    assert found.neighbour_tokens == pytest.approx(200, rel=0.05)


def test_borders_are_found_in_the_text_where_there_are_no_offsets() -> None:
    chunks = [replace(p, doc=None, start=None) for p in in_a_row(1, count=4, words=150, overlap=30)]
    assert said(asked(*chunks)).neighbour_tokens == pytest.approx(3 * 30, rel=0.05)


def test_a_copy_is_no_border_even_at_the_same_place_of_the_same_document() -> None:
    text = passage(1)
    found = said(
        asked(Piece(text, doc="a", start=0), Piece(text, doc="a", start=0), Piece(passage(2), doc="b", start=0))
    )
    assert found.neighbour_tokens == 0.0
    assert found.duplicate_tokens == 150


def test_copies_count_from_the_second_on() -> None:
    found = said(asked(*(Piece(passage(1)) for _ in range(4)), Piece(passage(2))))
    assert found.duplicate_tokens == 3 * 150
    assert found.context_tokens == 5 * 150


def test_neighbours_of_different_documents_share_nothing() -> None:
    assert said(asked(*distinct(1))).neighbour_tokens == 0.0


def test_hashed_content_repeats_as_much_as_text() -> None:
    seen = make_seen([Ask((*in_a_row(1, count=3), *(Piece(passage(9), doc=f"d{i}", start=0) for i in range(2))))])
    assert said(hashed(seen).requests[0]) == pytest.approx(said(seen.requests[0]))


def test_hashes_without_offsets_do_not_tell_who_neighbours_whom() -> None:
    seen = make_seen([Ask(tuple(replace(p, doc=None, start=None) for p in in_a_row(1)))])
    assert said(hashed(seen).requests[0]).neighbour_tokens is None


def test_nothing_is_said_of_a_prompt_whose_chunks_were_not_kept() -> None:
    request = asked(*distinct(1))
    bare = replace(
        request,
        chunks=tuple(replace(c, text=None) for c in request.chunks),
        parts=tuple(replace(p, text=None, token_keys=None) for p in request.parts),
    )
    assert repetition(bare) is None


def test_a_compiled_prompt_is_judged_by_what_is_left_of_its_chunks() -> None:
    request = asked(*in_a_row(1, count=2))
    left = {p.position: " ".join((p.text or "").split()[:20]) for p in request.parts if p.role == "context"}
    compiled = replace(
        request,
        parts=tuple(
            replace(p, text=left[p.position], tokens=20) if p.position in left else p for p in request.parts
        ),
    )
    assert [p.chunk for p in pieces(compiled)] == [None, None]
    assert said(compiled).context_tokens == 40
    assert said(compiled).duplicate_tokens == 0.0


def test_chunks_without_a_prompt_count_by_their_own_tokens_or_by_their_length() -> None:
    request = replace(asked(*distinct(1)), parts=())
    assert context_tokens(request) == 6 * 150
    uncounted = replace(request, chunks=tuple(replace(c, tokens=None) for c in request.chunks))
    tokens = context_tokens(uncounted)
    assert tokens is not None
    assert tokens == pytest.approx(6 * 150, rel=0.15)
    assert context_tokens(replace(uncounted, prompt_tokens=None)) is None


def test_shingles_computed_once_say_the_same() -> None:
    seen = make_seen([Ask(in_a_row(1)), Ask(distinct(2))])
    prepared = keyed(seen.requests, {"r00000": None})
    assert prepared[0].chunks[0].keys is not None
    assert prepared[1].chunks[0].keys is None
    assert [said(r) for r in prepared] == [said(r) for r in seen.requests]
