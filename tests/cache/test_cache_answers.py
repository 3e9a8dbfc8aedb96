"""The answer cache gives back the same answer to the same question, and to nobody else."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragclinic.cache.answers import AnswerKey, CachedAnswer, ProcessAnswerCache, stands_alone

KEY = AnswerKey("acme", "whatisakvcache", "index-1", "m", "s")
ANSWER = CachedAnswer("A store of keys and values.", ("c1",))


def test_an_answer_is_found_again() -> None:
    cache = ProcessAnswerCache(10, 60)
    cache.put(KEY, ANSWER)
    assert cache.get(KEY) == ANSWER
    cache.close()


@pytest.mark.parametrize("field", AnswerKey._fields)
def test_another_tenant_question_index_model_or_settings_is_a_miss(field: str) -> None:
    cache = ProcessAnswerCache(10, 60)
    cache.put(KEY, ANSWER)
    assert cache.get(KEY._replace(**{field: "other"})) is None
    cache.close()


@given(
    st.lists(st.text("ab|/", max_size=3), min_size=2, max_size=2),
    st.lists(st.text("ab|/", max_size=3), min_size=2),
)
def test_no_spelling_of_a_tenant_reaches_anothers_entry(mine: list[str], other: list[str]) -> None:
    cache = ProcessAnswerCache(10, 60)
    cache.put(AnswerKey(mine[0], mine[1], "i", "m", "s"), ANSWER)
    found = cache.get(AnswerKey(other[0], other[1], "i", "m", "s"))
    assert (found is not None) == (mine == other[:2])
    cache.close()


def test_an_answer_expires() -> None:
    cache = ProcessAnswerCache(10, 0.05)
    cache.put(KEY, ANSWER)
    deadline = time.monotonic() + 5
    while cache.get(KEY) is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert cache.get(KEY) is None
    cache.close()


@pytest.mark.parametrize(
    ("question", "alone"),
    [
        ("What is a KV cache?", True),
        ("什么是前缀缓存?", True),
        ("And why is that slow?", False),
        ("Why?", False),
        ("它为什么慢?", False),
        ("那这个怎么关掉?", False),
    ],
)
def test_a_question_that_leans_on_the_conversation_is_not_kept(question: str, alone: bool) -> None:
    assert stands_alone(question) is alone
