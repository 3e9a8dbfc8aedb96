"""The demo: a real RAG as most teams have it, why it is slow, the cure, and the same questions again.

Writes `as-found/` and `treated/` (recordings), `prescription.toml`, `demo.json` and `report.html` into a folder.
How many questions are asked depends on the machine: as many as fit the time, so that it ends on a slow one too.
Evidence is counted over all questions, since that needs no LLM.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from ragclinic.corpora import Corpus, Question
from ragclinic.corpora import load as load_corpus
from ragclinic.diagnosis import Prescription, diagnose, prescribe
from ragclinic.diagnosis.compare import Gold, compare
from ragclinic.diagnosis.compare_types import Comparison
from ragclinic.diagnosis.types import Diagnosis
from ragclinic.engine.embed import Embedder, open_embedder
from ragclinic.engine.index import Index
from ragclinic.engine.ingest import ingest
from ragclinic.engine.pipeline import Engine
from ragclinic.engine.session import local_model, open_engine, open_tokenizer
from ragclinic.engine.settings import Settings, preset
from ragclinic.lab.asking import Inquiry, ask_all
from ragclinic.signals.content import question_key
from ragclinic.signals.load import load
from ragclinic.signals.recording import is_recording
from ragclinic.signals.seen import Seen

Lang = Literal["en", "zh"]
SLO_MS = 8000.0


@dataclass(frozen=True, slots=True)
class Size:
    """How long the as-found run may take, and how many questions it asks at least."""

    budget_s: float
    at_least: int


FULL = Size(budget_s=270.0, at_least=6)
SHORT = Size(budget_s=100.0, at_least=2)


class Progress(Protocol):
    """Tells a person what is going on."""

    def step(self, name: str, total: int | None = None) -> None:
        """A new step begins, of `total` parts where that is known."""

    def advance(self, detail: str = "") -> None:
        """One more part of the step is done."""


@dataclass(frozen=True, slots=True)
class DemoResult:
    """All that the demo found out."""

    corpus: Corpus
    before: Seen
    after: Seen
    diagnosis: Diagnosis
    after_diagnosis: Diagnosis
    prescription: Prescription
    comparison: Comparison
    settings_before: Settings
    settings_after: Settings


def run_demo(out: Path, lang: Lang, size: Size, progress: Progress, slo_ms: float = SLO_MS) -> DemoResult:
    """Runs the whole demo; earlier recordings of a demo in `out` are replaced."""
    out.mkdir(parents=True, exist_ok=True)
    for name in ("as-found", "treated"):
        if is_recording(out / name):
            shutil.rmtree(out / name)
    corpus = load_corpus(lang)
    as_found = preset("as_found").with_changes({"prompt.language": lang})
    progress.step("model", None)
    model_path = local_model(as_found)
    embedder = open_embedder(as_found.embedder)
    progress.step("ingest", len(corpus.documents))
    index_folder = out / f"index-{lang}"
    ingest(
        corpus.documents, index_folder, as_found.chunking, embedder, open_tokenizer(model_path), progress.advance
    )
    index = Index.open(index_folder, embedder.identity)
    gold = {question_key(q.text): Gold(q.spans, q.answer) for q in corpus.questions}

    progress.step("as-found", None)
    inquiries = [Inquiry(q.text, q.session) for q in corpus.questions]
    asked, contexts_before = _run(as_found, index, embedder, inquiries, out / "as-found", size, progress, corpus)
    before = load(out / "as-found")
    diagnosis = diagnose(before, slo_ms)
    prescription = prescribe(before, diagnosis)
    (out / "prescription.toml").write_text(prescription.to_toml(), "utf-8")

    treated = as_found.with_changes(prescription.settings)
    progress.step("treated", len(asked))
    _, contexts_after = _run(treated, index, embedder, asked, out / "treated", None, progress, corpus)
    after = load(out / "treated")
    comparison = compare(
        before,
        after,
        gold,
        (contexts_before, contexts_after),
        prescription.prediction,
        similarity=_similarity(embedder),
    )
    return DemoResult(
        corpus=corpus,
        before=before,
        after=after,
        diagnosis=diagnosis,
        after_diagnosis=diagnose(after, slo_ms),
        prescription=prescription,
        comparison=comparison,
        settings_before=as_found,
        settings_after=treated,
    )


def _run(
    settings: Settings,
    index: Index,
    embedder: Embedder,
    inquiries: Sequence[Inquiry],
    recording: Path,
    size: Size | None,
    progress: Progress,
    corpus: Corpus,
) -> tuple[list[Inquiry], dict[str, str]]:
    with open_engine(settings, index, embedder, recording) as engine:
        asked = ask_all(
            engine,
            inquiries,
            users=settings.llm.slots,
            budget_s=size.budget_s if size else None,
            at_least=size.at_least if size else 0,
            on_answer=lambda inquiry, seconds: progress.advance(f"{seconds:5.1f} s  {inquiry.text}"),
        )
        return asked, _contexts(engine, corpus.questions)


def _contexts(engine: Engine, questions: Sequence[Question]) -> dict[str, str]:
    return {question_key(q.text): engine.prepare(q.text).prompt.context for q in questions}


def _similarity(embedder: Embedder) -> Callable[[Sequence[tuple[str, str]]], float]:
    def mean_cosine(pairs: Sequence[tuple[str, str]]) -> float:
        left, right = embedder([a or " " for a, _ in pairs]), embedder([b or " " for _, b in pairs])
        return float((left * right).sum(axis=1).mean())

    return mean_cosine
