"""Chunks in, the smallest sufficient context out; no network, no model of its own."""

from ragclinic.context.passages import Passage
from ragclinic.context.redundancy import jaccard, mean_pairwise_jaccard, shingles
from ragclinic.context.sentences import sentence_texts, split
from ragclinic.context.tokens import CountTokens, estimate_tokens

__all__ = [
    "CountTokens",
    "Passage",
    "estimate_tokens",
    "jaccard",
    "mean_pairwise_jaccard",
    "sentence_texts",
    "shingles",
    "split",
]
