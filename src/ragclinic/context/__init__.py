"""Chunks in, the smallest sufficient context out; no network, no model of its own."""

from ragclinic.context.passages import Passage
from ragclinic.context.sentences import sentence_texts, split
from ragclinic.context.tokens import CountTokens, estimate_tokens

__all__ = ["CountTokens", "Passage", "estimate_tokens", "sentence_texts", "split"]
