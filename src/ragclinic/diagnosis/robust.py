"""Robust regression with coefficients that cannot be negative: for timings, where disturbed rows are slow rows.

Least absolute *relative* deviations, found by reweighting: the fit passes through the middle of the rows at every
size, a short probe counts as much as a long prompt, and a few rows that something else slowed down do not move it.
"""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ROUNDS = 20
SETTLED = 1e-4
"""Relative change of every coefficient below which the fit has settled."""
TINY = 1e-3
"""Relative deviation below which a row counts as met; keeps weights finite."""


def fit(features: Floats, values: Floats) -> Floats:
    """Coefficients >= 0, one a column, so that features @ coefficients is near the values (> 0), row by row."""
    scale = np.abs(features).max(axis=0)
    scale[scale == 0] = 1.0
    # Rows divided by their value: deviations become relative.
    rows = features / scale / values[:, None]
    weights = np.ones(len(values))
    coefficients = np.zeros(features.shape[1])
    for _ in range(ROUNDS):
        before = coefficients
        coefficients = _nonnegative(rows.T @ (rows * weights[:, None]), rows.T @ weights)
        if (np.abs(coefficients - before) <= SETTLED * np.abs(before).max()).all():
            break
        weights = 1 / np.maximum(np.abs(rows @ coefficients - 1), TINY)
    return np.asarray(coefficients / scale, dtype=np.float64)


def _nonnegative(gram: Floats, right: Floats) -> Floats:
    """The c >= 0 that minimises c @ gram @ c - 2 * right @ c: exact, by trying sets of columns (at most three)."""
    best, best_gain = np.zeros(len(right)), 0.0
    for columns in _subsets(len(right)):
        chosen = list(columns)
        # The ridge only decides between columns that the rows cannot tell apart.
        ridge = 1e-12 * gram.trace() * np.eye(len(chosen))
        part = np.linalg.solve(gram[np.ix_(chosen, chosen)] + ridge, right[chosen])
        gain = float(part @ right[chosen])
        if (part >= 0).all() and gain > best_gain:
            best, best_gain = np.zeros(len(right)), gain
            best[chosen] = part
            if len(chosen) == len(right):
                break  # what is best without the bound is best with it
    return best


def _subsets(size: int) -> Iterator[tuple[int, ...]]:
    for count in range(size, 0, -1):
        yield from combinations(range(size), count)
