"""Passages in, the context that answers within a budget out.

The order in which sentences are taken does not depend on the budget, and they are taken up to the first that does
not fit. So a larger budget never drops what a smaller one kept, at the price of a few tokens left over.
"""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from ragclinic.context.compiled import BETWEEN, Compiled, Judged
from ragclinic.context.fill import Filling, fill
from ragclinic.context.leads import leads
from ragclinic.context.passages import Passage
from ragclinic.context.prepared import Sentence, sentences_of
from ragclinic.context.repeats import Repeats, find_repeats
from ragclinic.context.scoring import Column, Embed, chances, features
from ragclinic.context.tokens import CountTokens
from ragclinic.errors import BadInput

LENGTH_POWER = 0.25
"""How much a sentence's length counts against its chance: 0 not at all, 1 fully (chosen on the tuning halves)."""
SHORT_WORDS = 8
"""Added to a sentence's words before they count against it."""
LEAD_WORDS = 30
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
    prepared = [sentences_of(passage.text) for passage in passages]
    sentences = [sentence for of_one in prepared for sentence in of_one]
    tokens_in = _tokens_in(passages, count)
    if not sentences:
        return Compiled((), (), (), tokens_in, 0)
    passage = np.repeat(np.arange(len(prepared)), [len(of_one) for of_one in prepared])
    repeats = find_repeats(passages, prepared, deduplicate, merge_overlap)
    ample = budget_tokens is None or tokens_in <= budget_tokens
    vectors = _vectors(question, sentences, embed) if embed is not None and not ample and budget_tokens else None
    scores = chances(features(question, sentences, passage, vectors))
    for number, repeat in repeats.needless.items():
        scores[repeat.twin] = max(scores[repeat.twin], scores[number])
    order = _with_leads(_ranked(scores, sentences, repeats), prepared, repeats)
    filling = fill(
        passages, sentences, passage, repeats.begins, scores, order, None if ample else budget_tokens, count
    )
    return Compiled(
        filling.pieces,
        filling.kept,
        _judged(sentences, passage, scores, repeats, filling, tokens_in),
        tokens_in,
        filling.tokens,
    )


def _tokens_in(passages: Sequence[Passage], count: CountTokens) -> int:
    """Give the tokens of the passages as a prompt without a compiler has them."""
    texts = [p.text for p in passages if p.text]
    return sum(map(count, texts)) + count(BETWEEN) * max(0, len(texts) - 1)


def _vectors(
    question: str, sentences: Sequence[Sentence], embed: Embed
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Give the vectors of the question and of the sentences."""
    texts = [question, *(sentence.text for sentence in sentences)]
    rows = np.asarray(embed(texts), np.float32)
    if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
        raise BadInput(
            f"embed: an array of shape {rows.shape} for {len(texts)} texts; "
            "expected one row of finite numbers a text; check the embedder"
        )
    return rows[0], rows[1:]


def _ranked(scores: Column, sentences: Sequence[Sentence], repeats: Repeats) -> list[int]:
    """Give the sentences that say something new, the one to take first in front."""
    lengths = np.array([sentence.length for sentence in sentences])
    order = np.argsort(-scores / (lengths + SHORT_WORDS) ** LENGTH_POWER, kind="stable")
    return [int(number) for number in order if int(number) not in repeats.needless]


def _with_leads(ranked: Sequence[int], prepared: Sequence[Sequence[Sentence]], repeats: Repeats) -> list[int]:
    """Put behind each sentence the short ones it leans on, if they would come later."""
    firsts = accumulate((len(of_one) for of_one in prepared), initial=0)
    leaning = [
        [first + lead for lead in of_one if sentences[lead].length <= LEAD_WORDS]
        for first, sentences in zip(firsts, prepared, strict=False)
        for of_one in leads(sentences)
    ]
    order: dict[int, None] = {}
    for number in ranked:
        order[number] = None
        for lead in leaning[number]:
            twin = repeats.needless[lead].twin if lead in repeats.needless else lead
            order.setdefault(twin, None)
    return list(order)


def _judged(
    sentences: Sequence[Sentence],
    passage: NDArray[np.intp],
    scores: Column,
    repeats: Repeats,
    filling: Filling,
    tokens_in: int,
) -> tuple[Judged, ...]:
    """Say of every sentence what became of it."""
    rate = tokens_in / max(1, sum(sentence.length for sentence in sentences))
    found = []
    for number, sentence in enumerate(sentences):
        repeat = repeats.needless.get(number)
        found.append(
            Judged(
                passage=int(passage[number]),
                start=repeats.begins.get(number, sentence.start),
                end=sentence.end,
                tokens=filling.counted.get(number, round(rate * sentence.length)),
                score=float(scores[number]),
                why=repeat.why if repeat else "kept" if number in filling.taken else "below the cut",
                twin=repeat.twin if repeat else None,
            )
        )
    return tuple(found)
