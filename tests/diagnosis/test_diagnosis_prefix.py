"""The pointer: where two prompts part, and what they could share."""

from dataclasses import replace

import pytest
from diagnosis_builders import START_NS, Ask, Service, distinct, hashed, make_seen, without
from hypothesis import given
from hypothesis import strategies as st

from ragclinic.diagnosis.prefix import excerpt, point, predecessors, shareable_tokens
from ragclinic.diagnosis.turns import growth
from ragclinic.signals.records import Part, PartRole
from ragclinic.signals.seen import Request, Seen

ROLES: tuple[PartRole, ...] = ("system", "history", "context", "question", "volatile")


def prompt(name: str, *parts: tuple[PartRole, list[int]], session: str | None = None) -> Request:
    told = tuple(Part(name, i, role, len(keys), None, tuple(keys)) for i, (role, keys) in enumerate(parts))
    return Request(name, START_NS, 1.0, prompt_tokens=sum(p.tokens for p in told), parts=told, session=session)


keys = st.lists(st.integers(0, 3), max_size=6)
prompts = st.lists(st.tuples(st.sampled_from(ROLES), keys), min_size=1, max_size=5)


@given(prompts, prompts)
def test_the_token_is_the_end_of_the_longest_common_prefix(
    one: list[tuple[PartRole, list[int]]], other: list[tuple[PartRole, list[int]]]
) -> None:
    pointer = point(prompt("a", *one), prompt("b", *other))
    assert pointer is not None
    first = [k for _, part in one for k in part]
    second = [k for _, part in other for k in part]
    assert first[: pointer.token] == second[: pointer.token]
    assert pointer.token in (len(first), len(second)) or first[pointer.token] != second[pointer.token]


@given(prompts, prompts)
def test_no_more_can_be_shared_than_either_prompt_holds(
    one: list[tuple[PartRole, list[int]]], other: list[tuple[PartRole, list[int]]]
) -> None:
    a, b = prompt("a", *one), prompt("b", *other)
    pointer = point(a, b)
    assert pointer is not None
    assert 0 <= pointer.lost_tokens <= pointer.shareable_tokens <= min(a.prompt_tokens or 0, b.prompt_tokens or 0)


def test_a_clock_before_the_system_prompt_loses_all_of_it() -> None:
    seen = make_seen([Ask(distinct(i), session="s") for i in range(3)], Service(stable=False, system_tokens=500))
    pointer = point(seen.requests[1], seen.requests[2])
    assert pointer is not None
    assert (pointer.role, pointer.position, pointer.part_token, pointer.token) == ("volatile", 0, 4, 4)
    history = seen.requests[1].role_tokens("history") or 0
    assert pointer.shareable_tokens == 500 + history
    assert pointer.lost_tokens == 500 + history - 4


def test_a_stable_order_parts_in_the_context_and_loses_nothing() -> None:
    seen = make_seen([Ask(distinct(i)) for i in range(2)], Service(system_tokens=500))
    pointer = point(*seen.requests)
    assert pointer is not None
    assert (pointer.role, pointer.lost_tokens) == ("context", 0)


def test_the_same_chunks_in_another_order_could_be_shared() -> None:
    chunks = distinct(1)
    seen = make_seen([Ask(chunks), Ask(tuple(reversed(chunks)))])
    pointer = point(*seen.requests)
    assert pointer is not None
    assert pointer.same_chunks
    assert pointer.lost_tokens == 6 * 150


def test_something_volatile_inside_the_system_prompt_costs_only_itself() -> None:
    system = list(range(100))
    changed = [*system[:10], 999, *system[11:]]
    pointer = point(prompt("a", ("system", system)), prompt("b", ("system", changed)))
    assert pointer is not None
    assert (pointer.token, pointer.shareable_tokens, pointer.lost_tokens) == (10, 99, 89)


def test_another_system_prompt_shares_no_history() -> None:
    one = prompt("a", ("system", [1]), ("history", [5, 6]))
    assert shareable_tokens(one, prompt("b", ("system", [2]), ("history", [5, 6]))) == 0


def test_where_only_counts_were_kept_history_is_shared_within_a_session() -> None:
    parts = (Part("a", 0, "system", 50), Part("a", 1, "history", 30))
    one = Request("a", START_NS, 1.0, session="s", parts=parts)
    same = Request("b", START_NS, 1.0, session="s", parts=parts)
    other = Request("c", START_NS, 1.0, session="t", parts=parts)
    assert shareable_tokens(one, same) == 80
    assert shareable_tokens(one, other) == 50
    assert point(one, same) is None


def test_the_template_at_the_end_is_not_compared() -> None:
    rest = Part("a", 1, "template", 12)
    one, other = prompt("a", ("system", [1, 2])), prompt("b", ("system", [1, 2]))
    pointer = point(replace(one, parts=(*one.parts, rest)), replace(other, parts=(*other.parts, rest)))
    assert pointer is not None
    assert pointer.token == 2


def test_hashed_prompts_part_at_the_same_token_but_show_no_text() -> None:
    seen = make_seen([Ask(distinct(i)) for i in range(2)], Service(stable=False))
    kept = hashed(seen)
    assert point(*kept.requests) == point(*seen.requests)
    assert excerpt(*kept.requests) is None
    shown = excerpt(*seen.requests)
    assert shown is not None
    assert shown.common.endswith("the time is now 00000")
    assert (shown.first[0], shown.second[0]) == ("0", "1")


def test_a_request_follows_its_sessions_last_or_else_the_last_of_all() -> None:
    seen = make_seen([Ask(session="a"), Ask(session="b"), Ask(session="a"), Ask(session="c")])
    before = {later: earlier.id for later, earlier in predecessors(seen.requests).items()}
    assert before == {"r00001": "r00000", "r00002": "r00000", "r00003": "r00002"}


def test_an_answer_from_the_cache_read_no_prompt_and_is_nobodys_predecessor() -> None:
    seen = make_seen([Ask(), Ask(), Ask()])
    first, hit, last = seen.requests
    hit = without(Seen("s", (hit,)), parts=(), prompt_tokens=None).requests[0]
    assert predecessors([first, hit, last])[last.id] is first


def turns_of(prompts_and_cached: list[tuple[int, int]]) -> tuple[Request, ...]:
    return tuple(
        Request(f"r{i}", START_NS + i, 1.0, session="s", prompt_tokens=p, cached_tokens=c)
        for i, (p, c) in enumerate(prompts_and_cached)
    )


def test_constant_cached_tokens_in_a_growing_session_are_told_from_growing_ones() -> None:
    constant = growth(turns_of([(20000, 0), (24000, 16276), (28000, 16276), (32000, 16276)]))
    assert constant is not None
    assert constant.constant_share == 1.0
    assert constant.cached_tokens == 16276
    assert constant.lost == {"r2": 4000.0, "r3": 8000.0}
    keeping_up = growth(turns_of([(20000, 0), (24000, 19900), (28000, 23900)]))
    assert keeping_up is not None
    assert keeping_up.constant_share == 0.0


def test_only_sessions_whose_cache_stands_still_lose_tokens() -> None:
    keeping_up = [replace(r, session="t", id=f"t{r.id}") for r in turns_of([(100, 0), (200, 90), (300, 190)])]
    mixed = growth([*turns_of([(100, 0), (200, 50), (300, 50)]), *keeping_up])
    assert mixed is not None
    assert (mixed.sessions, mixed.constant_share) == (2, 0.5)
    assert mixed.lost == {"r2": 100.0}


@pytest.mark.parametrize("sizes", [[(100, 0), (200, 0)], [(100, 0), (101, 0), (102, 0)], []])
def test_short_or_steady_sessions_tell_nothing_of_growth(sizes: list[tuple[int, int]]) -> None:
    assert growth(turns_of(sizes)) is None
