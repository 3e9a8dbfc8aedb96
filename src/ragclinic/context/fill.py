"""Fills a budget with sentences in a given order and lays them out as text."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragclinic.context.compiled import BETWEEN, GAP, Kept
from ragclinic.context.passages import Passage
from ragclinic.context.prepared import Sentence
from ragclinic.context.scoring import Column
from ragclinic.context.tokens import CountTokens


class Filling(NamedTuple):
    """The sentences taken, laid out; `counted` are the tokens of those that were looked at."""

    taken: frozenset[int]
    counted: Mapping[int, int]
    pieces: tuple[tuple[str, int], ...]
    kept: tuple[Kept, ...]
    tokens: int
