"""The numbers behind the scores, fitted by `benchmarks/compression_fit.py`; change them there.

Fitted on half of up to 400 questions each of Natural Questions and CMRC 2018, as passages and as chunked documents,
and of the chunking evaluation's five corpora; the other halves, DRCD and RGB were never fitted on. A score reads as
the chance, in a balanced sample, that the sentence is part of the answer.
"""

from collections.abc import Mapping

WEIGHTS: Mapping[tuple[bool, bool], Mapping[str, float]] = {
    (False, False): {
        "sentence_bm25": 2.18,
        "passage_bm25": 1.99,
        "around_coverage": 0.77,
        "heading_bm25": -0.29,
        "length": -0.03,
        "is_heading": -0.71,
        "number_asked": 0.93,
        "name_asked": 1.13,
        "near_best": 2.29,
        "intercept": -4.29,
    },
    (False, True): {
        "sentence_bm25": 2.18,
        "passage_bm25": 1.99,
        "around_coverage": 0.77,
        "heading_bm25": -0.29,
        "length": -0.03,
        "is_heading": -0.71,
        "number_asked": 0.93,
        "name_asked": 1.14,
        "near_best": 2.29,
        "retrieved": 0.01,
        "intercept": -4.29,
    },
    (True, False): {
        "sentence_bm25": 1.58,
        "passage_bm25": 2.16,
        "around_coverage": 0.73,
        "heading_bm25": -0.14,
        "length": -0.04,
        "is_heading": -0.86,
        "number_asked": 0.87,
        "name_asked": 1.11,
        "near_best": 1.32,
        "sentence_dense": 0.93,
        "around_dense": 2.24,
        "passage_dense": 0.09,
        "heading_dense": -0.46,
        "intercept": -5.88,
    },
    (True, True): {
        "sentence_bm25": 1.58,
        "passage_bm25": 2.17,
        "around_coverage": 0.74,
        "heading_bm25": -0.14,
        "length": -0.03,
        "is_heading": -0.86,
        "number_asked": 0.86,
        "name_asked": 1.09,
        "near_best": 1.32,
        "sentence_dense": 0.92,
        "around_dense": 2.25,
        "passage_dense": 0.10,
        "heading_dense": -0.44,
        "retrieved": -0.06,
        "intercept": -5.88,
    },
}
"""By whether there are vectors and whether the passages have scores."""
