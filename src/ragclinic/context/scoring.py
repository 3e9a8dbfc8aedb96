"""How likely each sentence is to hold the answer, judged among the sentences that came with it."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ragclinic.context.asked import asked
from ragclinic.context.candidates import Candidates, Numbers
from ragclinic.context.stop_terms import STOP_TERMS
from ragclinic.context.weights import DENSE_WEIGHTS, LEXICAL_WEIGHTS
from ragclinic.context.words import terms

Rows = NDArray[np.float32]
Column = NDArray[np.float64]
Embed = Callable[[Sequence[str]], Rows]
"""Gives one row a text; rows need not have length 1."""

K1, B = 1.2, 0.75
"""BM25's usual constants: how soon a repeated term stops counting, how much length counts."""
NEIGHBOUR = 0.5
"""How much the sentences beside one count in the vector of its neighbourhood."""

BEST = 3
"""So many sentences, the best at first sight, draw those near them up."""

_LEXICAL = (
    "sentence_bm25",
    "passage_bm25",
    "around_coverage",
    "heading_bm25",
    "length",
    "is_heading",
    "number_asked",
    "name_asked",
    "near_best",
    "retrieved",
)
_DENSE = ("sentence_dense", "around_dense", "passage_dense", "heading_dense")
FEATURES = (*_LEXICAL, *_DENSE)
"""The lexical ones come first: the dense ones can be told with vectors only."""


def chances(by_name: Mapping[str, Column]) -> Column:
    """Give from the features of `features` the chance that each sentence holds the answer, 0..1."""
    weights = DENSE_WEIGHTS if "sentence_dense" in by_name else LEXICAL_WEIGHTS
    total = sum((weights[name] * column for name, column in by_name.items()), np.float64(weights["intercept"]))
    chance: Column = 1 / (1 + np.exp(-total))
    return chance


def features(question: str, found: Candidates, vectors: tuple[Rows, Rows] | None = None) -> dict[str, Column]:
    """Give a column for each of FEATURES, the dense ones where there are vectors, with one number a sentence.

    `vectors` are the question's and the sentences'. What has no natural scale is stretched to 0..1 over the
    sentences.
    """
    firsts = np.flatnonzero(np.append(True, found.passage[1:] != found.passage[:-1]))
    group = np.repeat(np.arange(len(firsts)), np.diff(np.append(firsts, len(found))))
    columns = _lexical(question, found, firsts, group)
    if vectors is not None:
        columns |= _dense(_unit(vectors[0][None])[0], _unit(vectors[1]), found, firsts, group)
    sights = ("sentence_bm25", "around_coverage", "sentence_dense", "around_dense")
    first_sight = np.sum([columns[name] for name in sights if name in columns], axis=0)
    columns["near_best"] = _near_best(first_sight, found.stretch)
    return columns


def _lexical(question: str, found: Candidates, firsts: Numbers, group: Numbers) -> dict[str, Column]:
    """Give what words tell; `firsts` are the first sentences of each passage, `group` is the passage of each."""
    sought, wants = question_terms(question), asked(question)
    sentences = [sentence.content for sentence in found.sentences]
    counts = np.array([[s.terms.get(term, 0) for s in sentences] for term in sought], np.float64)
    counts = counts.reshape(len(sought), len(sentences))
    lengths = np.array([s.length for s in sentences], np.float64)
    by_passage = np.add.reduceat(counts, firsts, axis=1), np.add.reduceat(lengths, firsts)
    single = _stretched(bm25(counts, lengths))
    return {
        "sentence_bm25": single,
        "passage_bm25": _stretched(bm25(*by_passage)[group]),
        "around_coverage": _coverage(_near(counts > 0, found.stretch)),
        "heading_bm25": _of_heading(single, found.heading),
        "length": np.log1p(lengths) / 4,
        "is_heading": np.array([s.kind == "heading" for s in found.sentences], np.float64),
        "number_asked": np.array([wants.number and s.number for s in sentences], np.float64),
        "name_asked": np.array([wants.name * s.names for s in sentences], np.float64),
        "retrieved": _centred(_stretched(found.retrieved)),
    }


def _dense(asking: Rows, rows: Rows, found: Candidates, firsts: Numbers, group: Numbers) -> dict[str, Column]:
    """Give the cosines of the question with each sentence, its neighbourhood, its passage and its heading."""
    together = (found.stretch[1:] == found.stretch[:-1])[:, None] * np.float32(NEIGHBOUR)
    around = rows.copy()
    around[1:] += rows[:-1] * together
    around[:-1] += rows[1:] * together
    centres = np.add.reduceat(rows, firsts, axis=0)
    single = _stretched((rows @ asking).astype(np.float64))
    return {
        "sentence_dense": single,
        "around_dense": _stretched((_unit(around) @ asking).astype(np.float64)),
        "passage_dense": _stretched((_unit(centres) @ asking)[group].astype(np.float64)),
        "heading_dense": _of_heading(single, found.heading),
    }


def _of_heading(column: Column, heading: Numbers) -> Column:
    """Give for each sentence the number of the heading over it, 0 where there is none."""
    return np.where(heading < 0, 0.0, column[heading])


def _near_best(sights: Column, stretch: Numbers) -> Column:
    """Give 1 for the best sentences at first sight, 1/2 for those beside them, 1/3 for the next, down to 0."""
    places = np.arange(len(sights))
    near = np.zeros(len(sights))
    for best in np.argsort(-sights, kind="stable")[:BEST]:
        near = np.maximum(near, (stretch == stretch[best]) / (1 + np.abs(places - best)))
    return near


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


def _stretched(values: Column) -> Column:
    """Stretch to 0..1; values that are all the same become 0."""
    low, high = values.min(), values.max()
    stretched: Column = (values - low) / (high - low) if high > low else np.zeros(len(values))
    return stretched


def _centred(values: Column) -> Column:
    """Take off the mean, so that 0 speaks neither for nor against."""
    centred: Column = values - values.mean()
    return centred


def _unit(rows: Rows) -> Rows:
    """Give the rows at length 1; rows of zeros stay."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Rows = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return unit
