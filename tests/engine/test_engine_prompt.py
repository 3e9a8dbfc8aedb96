"""The layout of a prompt decides what a prefix cache can reuse."""

from ragclinic.engine.prompt import Prompt, Turn, build
from ragclinic.engine.settings import PromptSettings

CONTEXT = [("chunk one", 0), ("chunk two", 1)]
TURNS = [Turn("first?", "one."), Turn("second?", "two."), Turn("third?", "three.")]


def flat(prompt: Prompt) -> str:
    """All messages as one text, as a chat template would have them."""
    return "".join(f"<{m['role']}>{m['content']}" for m in prompt.messages)


def shared(settings: PromptSettings) -> str:
    """What two successive turns of one session have in common at the beginning."""
    one = flat(build(settings, "third?", CONTEXT, TURNS[:2], "10:00:01"))
    two = flat(build(settings, "fourth?", [("other chunk", 0)], TURNS, "10:00:09"))
    return one[: next(i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b)]


def test_stable_first_shares_system_prompt_and_history() -> None:
    assert "two." in shared(PromptSettings(order="stable-first"))


def test_volatile_first_shares_next_to_nothing() -> None:
    assert len(shared(PromptSettings(order="volatile-first"))) < 60


def test_pieces_hold_the_text_of_the_messages_in_reading_order() -> None:
    prompt = build(PromptSettings(language="zh"), "什么是前缀缓存?", CONTEXT, TURNS, "10:00")
    text = flat(prompt)
    position = 0
    for piece in prompt.pieces:
        position = text.index(piece.text, position) + len(piece.text)


def test_history_can_be_limited() -> None:
    prompt = build(PromptSettings(history_turns=1), "q?", (), TURNS, "now")
    assert [p.text for p in prompt.pieces if p.role == "history"] == ["third?", "three."]
    assert not [
        p for p in build(PromptSettings(history_turns=0), "q?", (), TURNS, "now").pieces if p.role == "history"
    ]


def test_no_context_leaves_no_heading_of_it() -> None:
    assert "Context:" not in flat(build(PromptSettings(), "q?", (), (), "now"))
