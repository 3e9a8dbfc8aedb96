"""The numbers behind the scores, fitted by `benchmarks/compression_fit.py`; change them there.

Fitted on half of up to 400 questions each of Natural Questions and CMRC 2018, as passages and as chunked
documents, and of the chunking evaluation's five corpora; the other halves, DRCD and RGB were never fitted on. A
score reads as the chance, in a balanced sample, that the sentence is part of the answer.
"""

from collections.abc import Mapping

LEXICAL_WEIGHTS: Mapping[str, float] = {
    "sentence_bm25": 2.14,
    "passage_bm25": 1.98,
    "around_coverage": 0.87,
    "heading_bm25": 1.40,
    "length": 0.70,
    "is_heading": -2.20,
    "number_asked": 0.99,
    "name_asked": 1.07,
    "near_best": 2.33,
    "retrieved": 0,
    "intercept": -4.96,
}
DENSE_WEIGHTS: Mapping[str, float] = {
    "sentence_bm25": 1.37,
    "passage_bm25": 2.24,
    "around_coverage": 0.76,
    "heading_bm25": 1.27,
    "length": 0.81,
    "is_heading": -2.24,
    "number_asked": 0.92,
    "name_asked": 1.14,
    "near_best": 1.24,
    "retrieved": 0,
    "sentence_dense": 1.15,
    "around_dense": 2.57,
    "passage_dense": 0.14,
    "heading_dense": 0.07,
    "intercept": -6.98,
}
