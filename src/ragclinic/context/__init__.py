"""Chunks in, the smallest sufficient context out; no network, no model of its own."""

from ragclinic.context.compiled import Compiled, Judged, Kept
from ragclinic.context.compiler import compile_context
from ragclinic.context.overlaps import overlap_tokens
from ragclinic.context.passages import Passage
from ragclinic.context.redundancy import jaccard, mean_pairwise_jaccard, shingles
from ragclinic.context.scoring import Embed
from ragclinic.context.sentences import sentence_texts, split
from ragclinic.context.tokens import CountTokens, estimate_tokens

__all__ = [
    "Compiled",
    "CountTokens",
    "Embed",
    "Judged",
    "Kept",
    "Passage",
    "compile_context",
    "estimate_tokens",
    "jaccard",
    "mean_pairwise_jaccard",
    "overlap_tokens",
    "sentence_texts",
    "shingles",
    "split",
]
