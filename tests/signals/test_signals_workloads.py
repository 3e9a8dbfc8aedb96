"""Published workload traces give their own counts, their repeated questions and the blocks their prompts share."""

from collections import Counter
from pathlib import Path

import pytest

from ragclinic.signals.importing import ImportReport, import_paths
from ragclinic.signals.load import load
from ragclinic.signals.readers.reader import Origin
from ragclinic.signals.readers.workloads_csv import azure_span, burstgpt_span
from ragclinic.signals.seen import Seen

DATA = Path(__file__).parents[1] / "data"
SHARED = Path(__file__).parents[3] / "shared" / "data"


def read(*paths: Path, into: Path) -> tuple[ImportReport, Seen]:
    """The account and what a diagnosis sees."""
    report = import_paths(paths, into / "rec")
    return report, load(report.folder)


def repeats(seen: Seen) -> int:
    """How often a question was asked once more."""
    counts = Counter(r.question_key for r in seen.requests if r.question_key)
    return sum(n - 1 for n in counts.values())


def test_ragpulse_joins_requests_with_the_lengths_beside_them_whatever_their_order(tmp_path: Path) -> None:
    report, seen = read(DATA / "ragpulse", DATA / "ragpulse-lengths", into=tmp_path)
    first, fourth = seen.requests[0], seen.requests[3]
    assert (report.rows["spans"], repeats(seen), first.prompt_tokens, first.output_tokens) == (6, 2, 1031, 80)
    assert [(p.role, p.tokens, p.token_keys) for p in first.parts] == [
        ("system", 512, (1,)),
        ("system", 430, (2,)),
        ("system", 4, (100,)),
        ("context", 30, (200,)),
        ("context", 30, (201,)),
        ("question", 5, (500,)),
    ]
    assert [(c.rank, c.chunk_id, c.tokens) for c in first.chunks] == [(0, "200", 30), (1, "201", 30)]
    assert [p.role for p in fourth.parts][-3:] == ["history", "context", "question"]
    assert seen.notes[0] == "a workload trace: it holds arrivals and token counts, and no latencies"


def test_ragpulse_without_its_lengths_says_what_to_import(tmp_path: Path) -> None:
    report, seen = read(DATA / "ragpulse" / "0_trace.jsonl", into=tmp_path)
    assert seen.requests[0].parts == ()
    assert report.missing["prompt parts"].startswith("import the whole folder: 1_sys_prompt.jsonl")


def test_mooncake_counts_milliseconds_and_bailian_seconds(tmp_path: Path) -> None:
    _, seen = read(DATA / "mooncake" / "conversation.jsonl", into=tmp_path / "a")
    assert (seen.requests[1].arrival_ns - seen.requests[0].arrival_ns) == 1_500_000_000
    assert seen.requests[0].parts[0].token_keys == (0, 1, 10)
    _, seen = read(DATA / "mooncake" / "bailian.jsonl", into=tmp_path / "b")
    assert (seen.requests[1].arrival_ns - seen.requests[0].arrival_ns) == 2_500_000_000


def test_azure_reads_seven_decimals_and_time_zones() -> None:
    row = {"ContextTokens": "4808", "GeneratedTokens": "10"}
    old = azure_span({"TIMESTAMP": "2023-11-16 18:17:03.9799600", **row}, Origin("f", line=2))
    new = azure_span({"TIMESTAMP": "2024-05-10 02:00:00.009930+02:00", **row}, Origin("f", line=3))
    assert (old.start_ns, new.start_ns) == (1_700_158_623_979_960_000, 1_715_299_200_009_930_000)
    assert old.trace_id != new.trace_id


def test_burstgpt_takes_elapsed_time_for_the_duration_and_no_tokens_for_a_failure() -> None:
    row = {"Timestamp": "5", "Model": "GPT-4", "Request tokens": "472", "Log Type": "API log"}
    done = burstgpt_span({**row, "Response tokens": "18", "Elapsed time": "2.25"}, Origin("f", line=2))
    assert (done.end_ns - done.start_ns, done.error) == (2_250_000_000, None)
    assert (
        burstgpt_span({**row, "Response tokens": "0"}, Origin("f", line=3)).error == "failed: no response tokens"
    )


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"TIMESTAMP": "yesterday"}, "TIMESTAMP is 'yesterday'; expected a date and time"),
        ({"TIMESTAMP": "2023-11-16 18:17:03"}, "ContextTokens is empty; expected a number of tokens"),
        (
            {"TIMESTAMP": "2023-11-16 18:17:03", "ContextTokens": "x"},
            "ContextTokens is 'x'; expected a whole number",
        ),
        (
            {"TIMESTAMP": "2023-11-16 18:17:03", "ContextTokens": "-4", "GeneratedTokens": "1"},
            "-4 and 1 tokens; expected none below zero",
        ),
    ],
)
def test_a_bad_row_says_what_stood_there(row: dict[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        azure_span(row, Origin("f"))


def test_a_transcript_gives_a_request_an_answer_with_all_that_was_said_before(tmp_path: Path) -> None:
    report, seen = read(DATA / "chat-transcripts" / "sharegpt.json", into=tmp_path)
    assert (report.kept, report.skipped, [len(r.parts) for r in seen.requests]) == (2, 1, [1, 2])
    second = seen.requests[1]
    assert [(p.role, p.text) for p in second.parts] == [
        ("history", "Why does a request get preempted?\nBecause the key-value cache is full."),
        ("question", "Und auf Deutsch? 用中文呢？"),
    ]
    assert second.prompt_tokens == sum(p.tokens for p in second.parts)


needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data sets are not on this machine")


@pytest.mark.slow
@needs_shared
def test_ragpulse_itself_gives_7106_requests_and_814_repeated_questions(tmp_path: Path) -> None:
    report, seen = read(SHARED / "ragpulse", into=tmp_path)
    assert (len(seen.requests), report.bad, repeats(seen)) == (7106, (), 814)
    assert len({tuple(p.token_keys for p in r.parts if p.role == "system") for r in seen.requests}) == 7059
    first_blocks = Counter(r.parts[0].token_keys for r in seen.requests)
    assert sorted(first_blocks.values()) == [256, 1402, 5448]


@pytest.mark.slow
@needs_shared
@pytest.mark.parametrize(("name", "requests"), [("mooncake", 12_031), ("azure", 8_819 + 19_366)])
def test_mooncake_and_azure_give_their_own_counts(name: str, requests: int, tmp_path: Path) -> None:
    report = import_paths([SHARED / name], tmp_path / "rec")
    assert (report.rows["spans"], report.kept, report.bad) == (requests, requests, ())
