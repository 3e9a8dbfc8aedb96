"""Fits the few weights in `ragclinic/context/weights.py` and prints them.

Run: python benchmarks/compression_fit.py [VECTORS.npz]   (minutes the first time: it embeds; the file keeps that)
Logistic regression on the `tune` half of 400 NQ and 400 CMRC questions: does the sentence hold a gold answer?
Every question weighs the same; its sentences without an answer together weigh three times those with one.
"""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compression_data import Case, Embedder, cases, holds_answer
from ragclinic.context import Passage
from ragclinic.context.candidates import gather
from ragclinic.context.scoring import FEATURES, LEXICAL, features

QUESTIONS = 400
SEED = 0
RIDGE = 1.0
STEPS = 30
Array = NDArray[np.float64]


def rows(case: Case, embed: Embedder) -> tuple[Array, Array, Array]:
    """Give the features of a case's sentences, whether each holds an answer, and what each weighs."""
    found = gather([Passage(str(i), text) for i, text in enumerate(case.passages)])
    texts = [s.content.text for s in found.sentences]
    vectors = embed([case.question])[0], embed(texts)
    answers = np.array([holds_answer(text, case.answers) for text in texts], np.float64)
    weigh = np.where(answers > 0, 1 / max(1.0, answers.sum()), 3 / max(1.0, (1 - answers).sum()))
    return features(case.question, found, vectors), answers, weigh


def fit(x: Array, y: Array, weigh: Array) -> Array:
    """Give the weights of a logistic regression, the intercept last, by Newton's method."""
    x = np.column_stack([x, np.ones(len(x))])
    ridge = np.append(np.full(x.shape[1] - 1, RIDGE), 0)
    weights = np.zeros(x.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-x @ weights))
        slope = x.T @ (weigh * (chance - y)) + ridge * weights
        bend = (x.T * (weigh * chance * (1 - chance))) @ x + np.diag(ridge)
        weights -= np.linalg.solve(bend, slope)
    return weights


def main() -> None:
    embed = Embedder()
    kept = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    if kept:
        embed.load(kept)
    asked = [
        case for name in ("nq", "cmrc") for case in cases(name, QUESTIONS, SEED, embed) if case.half == "tune"
    ]
    parts = [rows(case, embed) for case in asked]
    if kept:
        embed.save(kept)
    x, y, weigh = (np.concatenate(column) for column in zip(*parts, strict=True))
    for title, width in (("lexical", LEXICAL), ("with vectors", len(FEATURES))):
        weights = fit(x[:, :width], y, weigh)
        print(f"{title}: {len(asked)} questions, {len(y)} sentences")
        for name, weight in zip((*FEATURES[:width], "intercept"), weights, strict=True):
            print(f"    {name:18} {weight:6.2f}")


if __name__ == "__main__":
    main()
