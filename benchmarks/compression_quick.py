"""How much of the evidence a compiled context keeps, beside two simple ways and on five public data sets.

Run: python benchmarks/compression_quick.py [--half test] [--questions 200] [--vectors FILE.npz]
A few minutes the first time, for the embedder; the file keeps its vectors. *Gold kept* is the share of questions
whose context at a half, a quarter and an eighth of the words still holds a gold answer, of those whose whole
context does. One thread. The data is not part of this project: see DATA in `compression_data.py`.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from compression_data import DATA, Case, Embedder, cases, count_words, holds_answer
from ragclinic.context import Passage, compile_context, split
from ragclinic.context.prepared import sentences_of
from ragclinic.context.scoring import bm25, question_terms

RATIOS = (2, 4, 8)
NAMES = ("nq", "cmrc", "drcd", "rgb-en", "rgb-zh")
SEED = 0
Method = Callable[[Case, int], str]


def head(case: Case, budget: int) -> str:
    """Keep the first sentences of the prompt."""
    return _taken(case, budget, np.zeros(_size(case)))


def bm25_sentences(case: Case, budget: int) -> str:
    """Keep the sentences with the highest BM25."""
    sentences = [s for passage in case.passages for s in sentences_of(passage)]
    counts = np.array(
        [[s.content.terms.get(t, 0) for s in sentences] for t in question_terms(case.question)], np.float64
    )
    return _taken(case, budget, bm25(counts, np.array([s.content.length for s in sentences], np.float64)))


def compiled(embed: Embedder | None) -> Method:
    """Keep what the compiler keeps, with or without vectors."""

    def method(case: Case, budget: int) -> str:
        passages = [Passage(str(i), text) for i, text in enumerate(case.passages)]
        return compile_context(case.question, passages, budget_tokens=budget, count=count_words, embed=embed).text

    return method


def _size(case: Case) -> int:
    return sum(len(split(passage)) for passage in case.passages)


def _taken(case: Case, budget: int, scores: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    """Take sentences by score while the budget lasts, in the order of the prompt."""
    texts = [passage[start:end] for passage in case.passages for start, end in split(passage)]
    taken, words = [], 0
    for number in np.argsort(-np.asarray(scores), kind="stable"):
        words += count_words(texts[number])
        if words > budget:
            break
        taken.append(int(number))
    return "\n".join(texts[number] for number in sorted(taken))


def kept(method: Method, asked: Sequence[Case]) -> tuple[list[float], float]:
    """Give the gold kept at each ratio, in percent, and the median time of a call in milliseconds."""
    shares, times = [], []
    for ratio in RATIOS:
        held = 0
        for case in asked:
            words = sum(map(count_words, case.passages))
            begin = time.perf_counter()
            text = method(case, words // ratio)
            times.append((time.perf_counter() - begin) * 1000)
            held += holds_answer(text, case.answers)
        shares.append(100 * held / len(asked))
    return shares, float(np.median(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("tune", "test", "all"), default="test")
    parser.add_argument("--questions", type=int, default=200, help="drawn of each data set, before the halves")
    parser.add_argument("--vectors", type=Path, help="keeps the embedder's vectors between runs")
    parser.add_argument("--data", nargs="+", choices=NAMES, default=NAMES)
    options = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"{DATA}: not there; expected the public data sets; see the top of compression_data.py")
    embed = Embedder()
    if options.vectors:
        embed.load(options.vectors)
    methods = {
        "head": head,
        "BM25 sentences": bm25_sentences,
        "compiled, words only": compiled(None),
        "compiled": compiled(embed),
    }
    for name in options.data:
        asked = [
            case
            for case in cases(name, options.questions, SEED, embed)
            if (options.half in ("all", case.half) or name.startswith("rgb"))
            and holds_answer("\n".join(case.passages), case.answers)
        ]
        embed([s.content.text for case in asked for passage in case.passages for s in sentences_of(passage)])
        for title, method in methods.items():
            shares, ms = kept(method, asked)
            print(
                f"{name:7} {len(asked):4} {title:22} " + " ".join(f"{s:6.1f}" for s in shares) + f"  {ms:6.1f} ms"
            )
    if options.vectors:
        embed.save(options.vectors)


if __name__ == "__main__":
    main()
