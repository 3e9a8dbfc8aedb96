"""Passages in, the context that answers within a budget out.

The order in which sentences are taken does not depend on the budget, and they are taken up to the first that does
not fit. So a larger budget never drops what a smaller one kept, at the price of a few tokens left over.
"""

from collections.abc import Sequence

import numpy as np

from ragclinic.context.candidates import Candidates, gather
from ragclinic.context.compiled import BETWEEN, Compiled
from ragclinic.context.duplicates import twins
from ragclinic.context.fill import fill
from ragclinic.context.judging import judged, kept_spans
from ragclinic.context.passages import Passage
from ragclinic.context.scoring import Column, Embed, Rows, chances, features
from ragclinic.context.tokens import CountTokens
from ragclinic.errors import BadInput

LENGTH_POWER = 0.25
"""How much a sentence's length counts against its chance: 0 not at all, 1 fully (chosen on the tuning halves)."""
SHORT_TERMS = 8
"""Added to a sentence's terms before they count against it."""
LEAD_TERMS = 30
"""A longer sentence is not brought along for the sake of another one."""


def compile_context(
    question: str,
    passages: Sequence[Passage],
    *,
    budget_tokens: int | None,
    count: CountTokens,
    embed: Embed | None = None,
    deduplicate: bool = True,
    merge_overlap: bool = True,
) -> Compiled:
    """Give the sentences of the passages that most likely answer the question, within a budget of tokens.

    `budget_tokens` bounds what `count` says of the text that comes out: 0 keeps nothing, None keeps all that is
    not said twice. `embed` is asked once, for the question and every sentence (as `sentence_texts` has them), and
    only if the budget makes a choice necessary; without it, words alone decide. `count` is asked for passages,
    kept sentences and the result: one that remembers saves most of the time here.

    Raises:
        BadInput: a negative budget, or an embedder that does not give one finite row a text.
    """
    if budget_tokens is not None and budget_tokens < 0:
        raise BadInput(
            f"budget_tokens: {budget_tokens}; expected 0 or more, or None for no budget; mend the setting"
        )
    texts = [passage.text for passage in passages if passage.text]
    tokens_in = sum(map(count, texts)) + count(BETWEEN) * max(0, len(texts) - 1)
    found = gather(passages, merge_overlap)
    if not len(found):
        return Compiled((), (), (), tokens_in, 0)
    repeats = twins([s.content for s in found.sentences]) if deduplicate else [None] * len(found)
    ample = budget_tokens is None or tokens_in <= budget_tokens
    scores = _scores(question, found, repeats, None if ample or not budget_tokens else embed)
    filling = fill(found, _order(found, scores, repeats), None if ample else budget_tokens, count)
    return Compiled(
        pieces=filling.pieces,
        kept=tuple(kept_spans(found, filling, scores)),
        sentences=judged(found, filling, scores, repeats, tokens_in),
        tokens_in=tokens_in,
        tokens_out=filling.tokens,
    )


def _scores(question: str, found: Candidates, repeats: Sequence[int | None], embed: Embed | None) -> Column:
    """Give the chance of each sentence; one that others repeat has the best of theirs."""
    vectors = _vectors(question, found, embed) if embed is not None else None
    scores = chances(features(question, found, vectors))
    for number, twin in enumerate(repeats):
        if twin is not None:
            scores[twin] = max(scores[twin], scores[number])
    return scores


def _vectors(question: str, found: Candidates, embed: Embed) -> tuple[Rows, Rows]:
    """Give the vectors of the question and of the sentences."""
    texts = [question, *(sentence.content.text for sentence in found.sentences)]
    rows = np.asarray(embed(texts), np.float32)
    if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
        raise BadInput(
            f"embed: an array of shape {rows.shape} for {len(texts)} texts; "
            "expected one row of finite numbers a text; check the embedder"
        )
    return rows[0], rows[1:]


def _order(found: Candidates, scores: Column, repeats: Sequence[int | None]) -> list[int]:
    """Give the sentences that repeat none, the one to take first in front.

    Behind each stand the short ones that it leans on, unless they came before.
    """
    lengths = np.array([sentence.content.length for sentence in found.sentences])
    ranked = np.argsort(-scores / (lengths + SHORT_TERMS) ** LENGTH_POWER, kind="stable")
    order: dict[int, None] = {}
    for number in map(int, ranked):
        if repeats[number] is not None:
            continue
        order[number] = None
        for lead in found.leaning[number]:
            first = repeats[lead]
            if lengths[lead] <= LEAD_TERMS:
                order.setdefault(lead if first is None else first, None)
    return list(order)
