"""The questions shipped for each corpus, put beside the documents that answer them."""

import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

from ragclinic.corpora.records import Document, Lang, Question
from ragclinic.corpora.spans import find_span

Entry = Mapping[str, Any]


def entries(lang: Lang) -> tuple[Entry, ...]:
    """The question file in the order of asking; an entry with `same_as` is filled from the earlier one."""
    text = resources.files("ragclinic.corpora").joinpath(f"questions_{lang}.toml").read_text("utf-8")
    filled: dict[str, Entry] = {}
    for entry in tomllib.loads(text)["question"]:
        earlier = filled[entry["same_as"]] if "same_as" in entry else {}
        filled[entry["id"]] = {**earlier, **entry}
    return tuple(filled.values())


def place(asked: Iterable[Entry], documents: Iterable[Document]) -> tuple[tuple[Question, ...], tuple[str, ...]]:
    """The questions that `documents` answer, each with its exact span, and the ids of the rest."""
    texts = {document.id: document.text for document in documents}
    questions: list[Question] = []
    skipped: list[str] = []
    for entry in asked:
        span = find_span(texts.get(entry["doc"], ""), entry["evidence"])
        if span is None:
            skipped.append(entry["id"])
            continue
        questions.append(
            Question(
                id=entry["id"],
                text=entry["text"],
                evidence=span,
                doc=entry["doc"],
                answer=entry["answer"],
                session=entry["session"],
                same_as=entry.get("same_as"),
                also=_elsewhere(entry.get("also", ()), texts.values()),
            )
        )
    return tuple(questions), tuple(skipped)


def _elsewhere(wanted: Iterable[str], texts: Iterable[str]) -> tuple[str, ...]:
    """The exact spans of sentences that may stand in any document; those that this corpus lacks are left out."""
    documents = tuple(texts)
    found = (next(filter(None, (find_span(text, sentence) for text in documents)), None) for sentence in wanted)
    return tuple(span for span in found if span is not None)
