"""How likely each sentence is to hold the answer, judged among the sentences that came with it."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ragclinic.context.asked import asked
from ragclinic.context.candidates import Candidates, Numbers
from ragclinic.context.stop_terms import STOP_TERMS
from ragclinic.context.weights import INTERCEPT, LEXICAL_INTERCEPT, LEXICAL_WEIGHTS, WEIGHTS
from ragclinic.context.words import terms

Rows = NDArray[np.float32]
Column = NDArray[np.float64]
Embed = Callable[[Sequence[str]], Rows]
"""Gives one row a text; rows need not have length 1."""

K1, B = 1.2, 0.75
"""BM25's usual constants: how soon a repeated term stops counting, how much length counts."""
NEIGHBOUR = 0.5
"""How much the sentences beside one count in the vector of its neighbourhood."""

FEATURES = (
    "sentence_bm25",
    "passage_bm25",
    "around_coverage",
    "length",
    "number_asked",
    "name_asked",
    "sentence_dense",
    "around_dense",
    "passage_dense",
)
LEXICAL = 6
"""So many of FEATURES, the first, need no vectors."""


def chances(columns: Column) -> Column:
    """Give for each row of `features` the chance that the sentence holds the answer, 0..1."""
    dense = columns.shape[1] > LEXICAL
    weights, intercept = (WEIGHTS, INTERCEPT) if dense else (LEXICAL_WEIGHTS, LEXICAL_INTERCEPT)
    chance: Column = 1 / (1 + np.exp(-(columns @ weights + intercept)))
    return chance


def features(question: str, found: Candidates, vectors: tuple[Rows, Rows] | None = None) -> Column:
    """Give one row a sentence and one column a name in FEATURES; the dense ones only where there are vectors.

    `vectors` are the question's and the sentences'. What has no natural scale is stretched to 0..1 over the
    sentences.
    """
    passage = found.passage
    firsts = np.flatnonzero(np.append(True, passage[1:] != passage[:-1]))
    group = np.repeat(np.arange(len(firsts)), np.diff(np.append(firsts, len(passage))))
    sought = question_terms(question)
    sentences = [sentence.content for sentence in found.sentences]
    counts = np.array([[s.terms.get(term, 0) for s in sentences] for term in sought], np.float64)
    counts = counts.reshape(len(sought), len(sentences))
    lengths = np.array([s.length for s in sentences], np.float64)
    by_passage = np.add.reduceat(counts, firsts, axis=1), np.add.reduceat(lengths, firsts)
    wants = asked(question)
    columns = [
        _stretched(bm25(counts, lengths)),
        _stretched(bm25(*by_passage)[group]),
        _coverage(_near(counts > 0, found.stretch)),
        np.log1p(lengths) / 4,
        np.array([wants.number and s.number for s in sentences], np.float64),
        np.array([wants.name * s.names for s in sentences], np.float64),
    ]
    if vectors is not None:
        columns.extend(_dense(_unit(vectors[0][None])[0], _unit(vectors[1]), firsts, group, found.stretch))
    return np.column_stack(columns)


def question_terms(question: str) -> list[str]:
    """Give the terms of a question that can tell sentences apart; all of them where none would be left."""
    every = list(dict.fromkeys(terms(question)))
    return [term for term in every if term not in STOP_TERMS] or every


def bm25(counts: Column, lengths: Column) -> Column:
    """Give the BM25 score of each text (a column of `counts`) for the terms (its rows), among these texts."""
    norm = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1.0))
    scores: Column = _rarity(counts > 0) @ (counts * (K1 + 1) / (counts + norm))
    return scores


def _rarity(present: NDArray[np.bool_]) -> Column:
    """Give the weight of each term (a row) by how few texts hold it, as BM25 has it."""
    holding = present.sum(axis=1)
    rarity: Column = np.log1p((present.shape[1] - holding + 0.5) / (holding + 0.5))
    return rarity


def _near(present: NDArray[np.bool_], stretch: Numbers) -> NDArray[np.bool_]:
    """Tell for each sentence (a column) which terms it or a sentence beside it holds."""
    together = stretch[1:] == stretch[:-1]
    near = present.copy()
    near[:, 1:] |= present[:, :-1] & together
    near[:, :-1] |= present[:, 1:] & together
    return near


def _coverage(present: NDArray[np.bool_]) -> Column:
    """Give for each column which share of the terms is present, rare terms weighing more."""
    rarity = _rarity(present)
    covered: Column = rarity @ present / max(float(rarity.sum()), 1e-9)
    return covered


def _dense(asking: Rows, rows: Rows, firsts: Numbers, group: Numbers, stretch: Numbers) -> list[Column]:
    """Give the cosines of the question with each sentence, with its neighbourhood and with its passage."""
    together = (stretch[1:] == stretch[:-1])[:, None] * np.float32(NEIGHBOUR)
    around = rows.copy()
    around[1:] += rows[:-1] * together
    around[:-1] += rows[1:] * together
    centres = np.add.reduceat(rows, firsts, axis=0)
    cosines = (rows @ asking, _unit(around) @ asking, (_unit(centres) @ asking)[group])
    return [_stretched(cosine.astype(np.float64)) for cosine in cosines]


def _stretched(values: Column) -> Column:
    """Stretch to 0..1; values that are all the same become 0."""
    low, high = values.min(), values.max()
    stretched: Column = (values - low) / (high - low) if high > low else np.zeros(len(values))
    return stretched


def _unit(rows: Rows) -> Rows:
    """Give the rows at length 1; rows of zeros stay."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Rows = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return unit
