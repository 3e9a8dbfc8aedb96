"""Builders of realistic reports: forty questions on two cores, P95 from 35 s to 4 s."""

import math
from dataclasses import replace

import pytest

from ragclinic.diagnosis.compare_types import AnswersCompared, Comparison, Percentiles, RunSummary
from ragclinic.diagnosis.heatmap import plane
from ragclinic.diagnosis.types import (
    Axes,
    Diagnosis,
    Finding,
    Interval,
    Latency,
    MissingSignal,
    Prediction,
    Remedy,
    StageShare,
)
from ragclinic.report.page import (
    Fact,
    FlameNode,
    HeatPoint,
    Page,
    PrefixPointer,
    PriceTag,
    PromptView,
    RunView,
    Segment,
    ZoneShares,
)


def make_budget(**stages_ms: float) -> tuple[StageShare, ...]:
    total = sum(stages_ms.values())
    return tuple(StageShare(name, ms, ms / total) for name, ms in stages_ms.items())


BUDGET_BEFORE = make_budget(
    queue=2_114.0, embed=3.1, search=1.4, assemble=2.2, prefill=29_870.0, decode=2_830.0, unaccounted=79.0
)
BUDGET_AFTER = make_budget(
    queue=212.0, embed=2.9, search=1.3, assemble=18.4, prefill=2_420.0, decode=1_130.0, unaccounted=31.0
)


def make_finding(cause: str = "prefix-unstable", share: float | None = 0.41, **changes: object) -> Finding:
    finding = Finding(
        cause=cause,
        axis="context",
        confidence=0.93,
        share_of_p95=share,
        evidence=("31 of 3,912 prompt tokens came from the prefix cache, while successive prompts share 2,604.",),
        signals_used=("cached_tokens", "prompt parts"),
        leads_to=("prefill-bound",),
        remedy=Remedy(
            {"prompt.order": "stable-first"},
            "What changes with every request goes last, so the prefix stays equal.",
        ),
        predicted_p95_ms=20_300.0,
        predicted_p95_low_ms=17_900.0,
        predicted_p95_high_ms=23_400.0,
        basis="calibrated",
    )
    return replace(finding, **changes)  # type: ignore[arg-type]


def make_findings() -> tuple[Finding, ...]:
    return (
        make_finding(),
        make_finding(
            "context-overfull",
            0.33,
            confidence=0.97,
            leads_to=("prefill-bound",),
            evidence=(
                "Prompts fill 0.78 of the 4,096-token window (median; 0.95 at P95).",
                "1,210 of 3,912 tokens would hold the gold evidence of every question.",
            ),
            signals_used=("prompt_tokens", "window_tokens"),
            remedy=Remedy(
                {"compiler.enabled": True, "compiler.budget_tokens": 400},
                "Ranked sentences fill a budget instead of whole chunks.",
            ),
            predicted_p95_ms=9_200.0,
            predicted_p95_low_ms=8_100.0,
            predicted_p95_high_ms=10_900.0,
        ),
        make_finding(
            "overlap-waste",
            0.12,
            confidence=0.99,
            leads_to=("context-overfull",),
            evidence=("Neighbours of the same document repeat 486 tokens in a prompt (12% of it).",),
            remedy=Remedy({"compiler.merge_overlap": True}, "Overlapping spans are merged."),
            predicted_p95_ms=31_000.0,
            predicted_p95_low_ms=29_600.0,
            predicted_p95_high_ms=32_700.0,
        ),
        make_finding(
            "answer-recomputed",
            None,
            axis="pipeline",
            confidence=0.88,
            leads_to=(),
            evidence=("9 of 40 questions had been asked before and paid the full price.",),
            remedy=Remedy({"cache.answers": True, "cache.ttl_s": 900.0}, "The same question is answered once."),
            predicted_p95_ms=None,
            predicted_p95_low_ms=None,
            predicted_p95_high_ms=None,
            basis=None,
        ),
    )


def make_diagnosis(**changes: object) -> Diagnosis:
    diagnosis = Diagnosis(
        verdict="context",
        slo_ms=8_000.0,
        requests=40,
        latency_ms=Latency(24_310.0, 34_899.7, 37_020.0),
        budget=BUDGET_BEFORE,
        axes=Axes(0.62, 0.41),
        findings=make_findings(),
        missing_signals=(
            MissingSignal(
                "GPU memory",
                ("device-full", "memory-fragmented"),
                "no GPU here; on a GPU: pip install 'ragclinic[gpu]'",
            ),
            MissingSignal(
                "client clock", ("network-slow",), "send traceparent from the client and export its spans"
            ),
        ),
        notes=("Two requests took part in the calibration and are not counted.",),
    )
    return replace(diagnosis, **changes)  # type: ignore[arg-type]


def make_comparison(**changes: object) -> Comparison:
    comparison = Comparison(
        before=RunSummary(
            name="as found",
            requests=40,
            ttft_ms=Percentiles(24_300.0, 34_880.0, 37_000.0),
            total_ms=Percentiles(24_310.0, 34_899.7, 37_020.0),
            prompt_tokens_mean=3_912.4,
            output_tokens_mean=41.0,
            cached_tokens_mean=31.0,
            evidence_kept=0.95,
            gold_answered=0.375,
        ),
        after=RunSummary(
            name="treated",
            requests=40,
            ttft_ms=Percentiles(1_240.0, 2_655.0, 2_910.0),
            total_ms=Percentiles(2_110.0, 3_815.6, 4_102.0),
            prompt_tokens_mean=521.8,
            output_tokens_mean=39.2,
            cached_tokens_mean=88.0,
            answers_from_cache=9,
            evidence_kept=0.95,
            gold_answered=0.4,
        ),
        questions=40,
        verdict="better",
        speedup_total_p95=Interval(9.147, 7.92, 10.41),
        speedup_ttft_p95=Interval(13.137, 11.2, 15.6),
        predicted=Prediction(3_610.0, 2_900.0, 4_620.0, "calibrated"),
        answers=AnswersCompared(40, 14, 0.86),
    )
    return replace(comparison, **changes)  # type: ignore[arg-type]


def _samples(median_ms: float, spread: float) -> tuple[float, ...]:
    quantiles = [(i + 0.5) / 40 for i in range(40)]
    return tuple(median_ms * math.exp(spread * math.log(q / (1 - q)) / 1.7) for q in quantiles)


def make_run_before() -> RunView:
    totals = _samples(24_000.0, 0.22)
    points = tuple(
        HeatPoint(min(0.98, 0.52 + 0.3 * math.sin(i * 1.7) ** 2), 0.31 + 0.2 * math.cos(i * 0.9) ** 2, ms / 1000)
        for i, ms in enumerate(totals)
    )
    flame = FlameNode(
        "request",
        34_899.7,
        (
            FlameNode("queue", 2_114.0),
            FlameNode("embed", 3.1),
            FlameNode("search", 1.4),
            FlameNode("assemble", 2.2),
            FlameNode(
                "generate",
                32_700.0,
                (
                    FlameNode(
                        "prefill",
                        29_870.0,
                        (
                            FlameNode("system", 590.0),
                            FlameNode("volatile", 130.0),
                            FlameNode("history", 4_900.0),
                            FlameNode(
                                "context", 23_950.0, tuple(FlameNode(f"chunk {i}", 3_991.6) for i in range(6))
                            ),
                            FlameNode("question", 300.0),
                        ),
                    ),
                    FlameNode("decode", 2_830.0),
                ),
            ),
            FlameNode("unaccounted", 79.0),
        ),
    )
    return RunView(
        p95_ms=34_899.7,
        budget=BUDGET_BEFORE,
        total_ms=totals,
        ttft_ms=tuple(ms - 15 for ms in totals),
        points=points,
        zones=ZoneShares(0.0, 0.83, 0.17),
        flame=flame,
    )


def make_run_after() -> RunView:
    totals = (*(4.1 + i * 0.2 for i in range(9)), *_samples(2_300.0, 0.2)[:31])
    points = tuple(
        HeatPoint(0.2 + 0.08 * math.sin(i * 1.3) ** 2, 0.04 + 0.06 * math.cos(i * 0.7) ** 2, ms / 1000)
        for i, ms in enumerate(totals)
    )
    flame = FlameNode(
        "request",
        3_815.6,
        (
            FlameNode("queue", 212.0),
            FlameNode("assemble", 18.4),
            FlameNode(
                "generate",
                3_550.0,
                (
                    FlameNode("prefill", 2_420.0, (FlameNode("context", 2_060.0), FlameNode("question", 290.0))),
                    FlameNode("decode", 1_130.0),
                ),
            ),
            FlameNode("unaccounted", 31.0),
        ),
    )
    return RunView(
        p95_ms=3_815.6,
        budget=BUDGET_AFTER,
        total_ms=totals,
        ttft_ms=tuple(ms * 0.66 for ms in totals),
        points=points,
        zones=ZoneShares(0.98, 0.02, 0.0),
        flame=flame,
    )


def make_prompt() -> PromptView:
    clock = Segment("The current time is 2026-12-01 09:14:07. ", "volatile", False, "moved")
    system = Segment(
        "You are the assistant of a knowledge base. Answer the question from the context only, in one or two "
        "sentences. If the context does not hold the answer, say that you do not know.",
        "system",
    )
    needed = (
        "An assignment expression (sometimes also called a “named expression” or “walrus”) assigns an expression "
        "to an identifier, while also returning the value of the expression. "
    )
    aside = (
        "One common use case is when handling matched regular expressions, or when processing a file stream in "
        "chunks. Assignment expressions must be surrounded by parentheses when used as expression statements. "
    )
    again = "Changed in version 3.8: Assignment expressions were added. See PEP 572 for more details. " * 3
    context: list[Segment] = []
    for number in range(6):
        context.append(Segment(needed, "context", number == 0, "" if number == 0 else "duplicate"))
        context.append(Segment(aside, "context", number in (0, 2), "" if number in (0, 2) else "overlap"))
        context.append(Segment(again + f"[{number}]\n", "context", False, "below the cut"))
    question = Segment("Question: What does the walrus operator give back?", "question")
    history = Segment(
        "What is a lambda? A small anonymous function made by an expression.\n", "history", False, "history"
    )
    return PromptView(
        question="What does the walrus operator give back?",
        before=(clock, system, history, *context, question),
        before_tokens=3_912,
        after=(system, Segment(needed, "context"), Segment(aside, "context"), replace(clock, kept=True), question),
        after_tokens=486,
    )


def make_page(**changes: object) -> Page:
    docs = (
        "assignment-expressions",
        "assignment-expressions",
        "lambda",
        "conditional-expressions",
        "yieldexpr",
        "operator-summary",
    )
    page = Page(
        source="out/demo/as-found",
        diagnosis=make_diagnosis(),
        before=make_run_before(),
        after=make_run_after(),
        comparison=make_comparison(),
        plane=plane(),
        prompt=make_prompt(),
        prices=tuple(
            PriceTag(
                i,
                doc,
                512 - 7 * i,
                3_990.0 - 55 * i,
                412e6 - 8e6 * i,
                (128, 128, 0, 9, 4, 61)[i],
                i == 0,
                i in (0, 2),
            )
            for i, doc in enumerate(docs)
        ),
        pointer=PrefixPointer(
            token=12,
            role="volatile",
            common="…The current time is 2026-12-01 09:14:",
            first="07. You are the assistant of a knowledge base.",
            second="41. You are the assistant of a knowledge base.",
            lost_tokens=2_604,
        ),
        facts=(
            Fact("date", "2026-12-01 09:14 UTC"),
            Fact("machine", "2 cores, 8 GiB, no GPU"),
            Fact("llm", "SmolLM2-135M-Instruct Q8_0, window 8,192, 1 slot"),
            Fact("embedder", "use-multilingual, 512 dimensions"),
            Fact("corpus", "pydoc topics, 1,204 chunks"),
            Fact("versions", "ragclinic 0.1.0, xllamacpp 2026.10, Python 3.11"),
        ),
    )
    return replace(page, **changes)  # type: ignore[arg-type]


@pytest.fixture
def diagnosis() -> Diagnosis:
    return make_diagnosis()


@pytest.fixture
def comparison() -> Comparison:
    return make_comparison()


@pytest.fixture
def page() -> Page:
    return make_page()


@pytest.fixture
def page_alone() -> Page:
    """A diagnosis without an after, and without what only our own engine tells."""
    return make_page(after=None, comparison=None, prompt=None, prices=(), pointer=None, facts=())
