"""Lays out a prompt: which part stands where. Pure; the order decides whether a prefix cache can work."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ragclinic.engine.settings import PromptSettings
from ragclinic.signals.records import PartRole

SYSTEM = {
    "en": (
        "You are the assistant of a knowledge base. Answer the question from the context only, in one or two "
        "sentences. If the context does not hold the answer, say that you do not know. Do not invent names, "
        "numbers or sources."
    ),
    "zh": (
        "你是知识库的问答助手。只根据给出的资料回答问题,用一到两句话。"
        "资料中没有答案时,请说不知道。不要编造名称、数字或来源。"
    ),
}
CLOCK = {"en": "The current time is {now}.", "zh": "当前时间:{now}。"}
CONTEXT = {"en": "Context:", "zh": "资料:"}
QUESTION = {"en": "Question: ", "zh": "问题:"}


class Turn(NamedTuple):
    """A question asked before in the session, and its answer."""

    question: str
    answer: str


class Piece(NamedTuple):
    """A stretch of the prompt and what it is; `rank` names the chunk of a piece of context."""

    role: PartRole
    text: str
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """Messages for the LLM, and the same text as pieces in reading order."""

    messages: tuple[dict[str, str], ...]
    pieces: tuple[Piece, ...]

    @property
    def context(self) -> str:
        """The retrieved text as the LLM reads it."""
        return "\n".join(p.text for p in self.pieces if p.role == "context")


def build(
    settings: PromptSettings,
    question: str,
    context: Sequence[tuple[str, int | None]],
    history: Sequence[Turn],
    now: str,
) -> Prompt:
    """The prompt for a question; `context` are texts with the rank of the chunk that each comes from.

    `volatile-first` puts the clock before everything, as many templates do; `stable-first` puts system prompt
    and history first, which the next turn repeats to the letter, and the clock last.
    """
    language = settings.language
    system = Piece("system", settings.system or SYSTEM[language])
    clock = Piece("volatile", CLOCK[language].format(now=now))
    turns = history if settings.history_turns < 0 else history[max(0, len(history) - settings.history_turns) :]
    asked = [Piece("template", CONTEXT[language])] if context else []
    asked += [Piece("context", text, rank) for text, rank in context]
    asked.append(Piece("question", QUESTION[language] + question))
    head = [clock, system] if settings.order == "volatile-first" else [system]
    if settings.order == "stable-first":
        asked.append(clock)
    past = [Piece("history", text) for turn in turns for text in turn]
    messages = [_message("system", head)]
    for turn in turns:
        messages += [{"role": "user", "content": turn.question}, {"role": "assistant", "content": turn.answer}]
    messages.append(_message("user", asked))
    return Prompt(tuple(messages), (*head, *past, *asked))


def _message(role: str, pieces: Sequence[Piece]) -> dict[str, str]:
    return {"role": role, "content": "\n\n".join(p.text for p in pieces)}
