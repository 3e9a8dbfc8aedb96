"""How likely each sentence is to hold the answer, judged among the sentences that came with it."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ragclinic.context.asked import asked
from ragclinic.context.prepared import Sentence
from ragclinic.context.weights import INTERCEPT, LEXICAL_INTERCEPT, LEXICAL_WEIGHTS, WEIGHTS
from ragclinic.context.words import terms

Rows = NDArray[np.float32]
Column = NDArray[np.float64]
Embed = Callable[[Sequence[str]], Rows]
"""Gives one row a text; rows need not have length 1."""

STOP_TERMS = frozenset(
    # Words and character pairs that ask or bind but name nothing. Negations are not among them.
    "a an the of in on at to for by with from as is are was were be been being do does did has have had and or but that"
    " this these those it its what which who whom whose when where why how there if then than so such can could will"
    " would should may might i you he she they we my your his her their our me him them us about into s"
    " 什么 么是 是什 哪些 哪个 哪里 哪一 哪位 多少 几个 谁是 是谁 怎么 怎样 如何 为什 么样 是哪 在哪 的是 了什 有什 有哪"
    " 什麼 麼是 哪個 哪裡 幾個 誰是 是誰 怎麼 怎樣 為什 麼樣 何时 何時 多久 请问 請問".split()
)
K1, B = 1.2, 0.75
"""BM25's usual constants: how soon a repeated term stops counting, how much length counts."""

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


def question_terms(question: str) -> list[str]:
    """Give the terms of a question that can tell sentences apart; all of them where none would be left."""
    every = list(dict.fromkeys(terms(question)))
    return [term for term in every if term not in STOP_TERMS] or every


def bm25(counts: Column, lengths: Column) -> Column:
    """Give the BM25 score of each text (a column of `counts`) for the terms (its rows), among these texts."""
    holding = (counts > 0).sum(axis=1)
    weight = np.log1p((counts.shape[1] - holding + 0.5) / (holding + 0.5))
    norm = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1.0))
    scores: Column = weight @ (counts * (K1 + 1) / (counts + norm))
    return scores


def features(
    question: str,
    sentences: Sequence[Sentence],
    passage: NDArray[np.intp],
    vectors: tuple[Rows, Rows] | None,
) -> Column:
    """Give one row a sentence and one column a name in FEATURES; the dense ones only where there are vectors.

    `passage` says which passage each sentence stands in, sentences of one passage being together; `vectors` are
    the question's and the sentences'. What has no natural scale is stretched to 0..1 over the sentences.
    """
    sought = question_terms(question)
    counts = np.array([[s.terms.get(term, 0) for s in sentences] for term in sought], np.float64)
    counts = counts.reshape(len(sought), len(sentences))
    lengths = np.array([s.length for s in sentences], np.float64)
    by_passage = _summed(counts, passage)
    wants = asked(question)
    columns = [
        _stretched(bm25(counts, lengths)),
        _stretched(bm25(by_passage, np.bincount(passage, lengths))[passage]),
        _coverage(_with_neighbours(counts, passage) > 0),
        np.log1p(lengths) / 4,
        np.array([wants.number and s.number for s in sentences], np.float64),
        np.array([wants.name * s.names for s in sentences], np.float64),
    ]
    if vectors is not None:
        asking, rows = _unit(vectors[0].reshape(1, -1))[0], _unit(vectors[1])
        columns.append(_stretched(rows @ asking))
        columns.append(_stretched(_unit(_with_neighbours(rows.T, passage, 0.5).T) @ asking))
        columns.append(_stretched((_unit(_summed(rows.T, passage).T) @ asking)[passage]))
    return np.column_stack(columns)


def _summed(counts: Column, passage: NDArray[np.intp]) -> Column:
    """Add up the counts of the sentences of each passage."""
    totals = np.zeros((counts.shape[0], int(passage[-1]) + 1))
    np.add.at(totals.T, passage, counts.T)
    return totals


def _with_neighbours(rows: Column, passage: NDArray[np.intp], share: float = 1.0) -> Column:
    """Add to each column a share of those to its left and right that stand in the same passage."""
    together = passage[1:] == passage[:-1]
    around: Column = rows.astype(np.float64)
    around[:, 1:] += share * rows[:, :-1] * together
    around[:, :-1] += share * rows[:, 1:] * together
    return around


def _coverage(present: NDArray[np.bool_]) -> Column:
    """Give for each column which share of the terms is present, rare terms weighing more."""
    holding = present.sum(axis=1)
    weight = np.log1p((present.shape[1] - holding + 0.5) / (holding + 0.5))
    covered: Column = weight @ present / max(float(weight.sum()), 1e-9)
    return covered


def _stretched(values: Column) -> Column:
    """Stretch to 0..1; values that are all the same become 0."""
    low, high = values.min(), values.max()
    stretched: Column = (values - low) / (high - low) if high > low else np.zeros(len(values))
    return stretched


def _unit(rows: Rows) -> Rows:
    """Give the rows at length 1; rows of zeros stay."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Rows = rows / np.where(norms > 0, norms, 1)
    return unit


def chances(columns: Column) -> Column:
    """Give for each row of `features` the chance that the sentence holds the answer, 0..1."""
    dense = columns.shape[1] > LEXICAL
    weights, intercept = (WEIGHTS, INTERCEPT) if dense else (LEXICAL_WEIGHTS, LEXICAL_INTERCEPT)
    chance: Column = 1 / (1 + np.exp(-(columns @ weights + intercept)))
    return chance
