"""Any files become a recording: the account balances, clocks agree, both ends of a request are joined."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from ragclinic.cli.bytes_progress import BytesProgress
from ragclinic.cli.import_ import import_
from ragclinic.errors import BadInput
from ragclinic.signals.content import ContentPolicy
from ragclinic.signals.importing import ImportOptions, ImportReport, import_paths
from ragclinic.signals.load import load
from ragclinic.signals.readers import READERS
from ragclinic.signals.recording import open_recording
from ragclinic.signals.seeing import see

DATA = Path(__file__).parents[1] / "data"
T0 = 1_796_142_000_000_000_000
MS = 1_000_000


def otlp(path: Path, *spans: dict[str, Any], service: str = "app") -> Path:
    """A file of spans as OTLP JSON."""
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    path.write_text(
        json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}]})
    )
    return path


def span(trace: int, number: int, start_ms: float, end_ms: float, parent: int = 0, **named: Any) -> dict[str, Any]:
    """A span; attributes by name with `__` for a dot."""
    typed = [{"key": k.replace("__", "."), "value": value(v)} for k, v in named.items()]
    return {
        "traceId": f"{trace:032x}",
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": "s",
        "startTimeUnixNano": str(T0 + int(start_ms * MS)),
        "endTimeUnixNano": str(T0 + int(end_ms * MS)),
        "attributes": typed,
    }


def value(told: Any) -> dict[str, Any]:
    """A typed value of OTLP JSON."""
    return (
        {"intValue": str(told)}
        if isinstance(told, int)
        else {"stringValue": told}
        if isinstance(told, str)
        else {"doubleValue": told}
    )


def request(
    trace: int, at_ms: float, response: str = "", prompt: int = 100, answer: int = 20
) -> list[dict[str, Any]]:
    """A request of an application: a root and its call of an LLM, which takes 1,000 ms from 100 ms on."""
    call: dict[str, Any] = {"gen_ai__operation__name": "chat", "gen_ai__usage__input_tokens": prompt}
    call |= {"gen_ai__usage__output_tokens": answer} | ({"gen_ai__response__id": response} if response else {})
    root = trace * 10
    return [span(trace, root, at_ms, at_ms + 1200), span(trace, root + 1, at_ms + 100, at_ms + 1100, root, **call)]


def served(
    trace: int, at_ms: float, request_id: str = "r", parent: int = 0, prompt: int = 100, answer: int = 20
) -> dict[str, Any]:
    """What the LLM's server saw: 900 ms from 150 ms after the request arrived, a third of them in its queue."""
    told: dict[str, Any] = {"gen_ai__request__id": request_id, "gen_ai__latency__e2e": 0.9}
    told |= {"gen_ai__latency__time_in_queue": 0.3, "gen_ai__latency__time_in_model_prefill": 0.2}
    told |= {"gen_ai__latency__time_in_model_decode": 0.4, "gen_ai__usage__prompt_tokens": prompt}
    told |= {"gen_ai__usage__completion_tokens": answer}
    return span(trace, trace * 10 + 5, at_ms + 150, at_ms + 1050, parent, **told)


def stages(report: ImportReport) -> list[list[tuple[str, float]]]:
    """The stages of each request."""
    return [[(s.name, round(s.duration_ms)) for s in r.stages] for r in load(report.folder).requests]


WATERFALL = [("queue", 300), ("prefill", 200), ("decode", 400)]


def test_a_server_span_in_the_client_s_trace_is_its_child_already(tmp_path: Path) -> None:
    client = otlp(tmp_path / "a.json", *request(1, 0))
    server = otlp(tmp_path / "b.json", served(1, 0, parent=11), service="vllm")
    report = import_paths([client, server], tmp_path / "rec")
    assert (report.finished.joined, stages(report)) == (0, [WATERFALL])


def test_a_server_span_whose_parent_was_not_exported_goes_under_the_call_around_it(tmp_path: Path) -> None:
    client = otlp(tmp_path / "a.json", *request(1, 0))
    server = otlp(tmp_path / "b.json", served(1, 0, parent=999), service="vllm")
    report = import_paths([client, server], tmp_path / "rec")
    assert (report.finished.joined, report.finished.orphans, stages(report)) == (1, 0, [WATERFALL])


@pytest.mark.parametrize(("response", "id_"), [("chatcmpl-7", "chatcmpl-7"), ("cmpl-7", "cmpl-7-0")])
def test_a_server_span_of_another_trace_is_joined_by_its_request_id(
    response: str, id_: str, tmp_path: Path
) -> None:
    client = otlp(tmp_path / "a.json", *request(1, 0, response), *request(2, 5, "other"))
    server = otlp(tmp_path / "b.json", served(77, 0, id_), service="vllm")
    report = import_paths([client, server], tmp_path / "rec")
    first, second = load(report.folder).requests
    assert (report.finished.joined, stages(report)[0]) == (1, WATERFALL)
    assert (first.prompt_tokens, [s.name for s in second.stages]) == (100, ["generate"])


def test_without_any_id_time_and_token_counts_join_them(tmp_path: Path) -> None:
    client = otlp(tmp_path / "a.json", *request(1, 0, prompt=100), *request(2, 5, prompt=101))
    server = otlp(tmp_path / "b.json", served(77, 0, prompt=101), service="vllm")
    report = import_paths([client, server], tmp_path / "rec")
    assert (report.finished.joined, stages(report)[1]) == (1, WATERFALL)


def test_where_two_calls_fit_none_is_joined(tmp_path: Path) -> None:
    client = otlp(tmp_path / "a.json", *request(1, 0), *request(2, 5))
    server = otlp(tmp_path / "b.json", served(77, 0), service="vllm")
    report = import_paths([client, server], tmp_path / "rec")
    assert (report.finished.joined, len(load(report.folder).requests)) == (0, 3)


@pytest.mark.parametrize("skew_ms", [-40_000.0, 25.0, 3_600_000.0])
def test_a_clock_that_is_off_is_set_by_the_pairs_and_the_offset_is_told(skew_ms: float, tmp_path: Path) -> None:
    client = otlp(tmp_path / "a.json", *(s for i in range(1, 9) for s in request(i, i * 2000, f"id-{i}")))
    server = otlp(
        tmp_path / "b.json",
        *(served(i + 100, i * 2000 + skew_ms * 4, f"id-{i}") for i in range(1, 9)),
        service="vllm",
    )
    report = import_paths([client, server], tmp_path / "rec")
    assert report.clock_offsets_ms == {f"{server} vllm": -skew_ms * 4}
    assert (report.finished.joined, stages(report)) == (8, [WATERFALL] * 8)


def test_clocks_that_agree_are_left_alone(tmp_path: Path) -> None:
    client = otlp(tmp_path / "a.json", *request(1, 0, "x"))
    server = otlp(tmp_path / "b.json", served(2, 20, "x"), service="vllm")
    assert import_paths([client, server], tmp_path / "rec").clock_offsets_ms == {}


def test_an_offset_set_by_hand_counts_instead(tmp_path: Path) -> None:
    client = otlp(tmp_path / "a.json", *request(1, 0, "x"))
    server = otlp(tmp_path / "b.json", served(2, -5000, "x"), service="vllm")
    options = ImportOptions(clock_offsets_ms={"b.json": 5010.0})
    report = import_paths([client, server], tmp_path / "rec", options)
    assert report.clock_offsets_ms == {f"{server} vllm": 5010.0}
    starts = {s.name: s.start_ms for s in load(report.folder).requests[0].stages}
    assert starts["queue"] == 160.0
    with pytest.raises(
        BadInput, match=r"--clock-offset c.json: no such input; expected the end of one of: .*a.json"
    ):
        import_paths([client], tmp_path / "rec2", ImportOptions(clock_offsets_ms={"c.json": 1.0}))


def test_a_span_exported_twice_is_kept_once_and_counted(tmp_path: Path) -> None:
    once, again = otlp(tmp_path / "a.json", *request(1, 0)), otlp(tmp_path / "b.json", *request(1, 0))
    report = import_paths([once, again], tmp_path / "rec")
    assert (report.kept, report.rows["spans"], len(load(report.folder).requests)) == (2, 2, 1)
    bad = report.bad[0]
    assert (bad.kind, bad.count, str(bad.first)) == ("duplicate span id", 2, str(again))


def test_missing_parents_are_counted_and_their_spans_kept(tmp_path: Path) -> None:
    path = otlp(tmp_path / "a.json", span(1, 1, 0, 10, 99), span(1, 2, 2, 5, 1))
    report = import_paths([path], tmp_path / "rec")
    assert (report.kept, report.finished.orphans, len(load(report.folder).requests)) == (2, 1, 1)


def test_mixed_files_are_each_read_as_what_they_are_and_the_unknown_named(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.log").write_bytes((DATA / "jaeger-json" / "ui-download.json").read_bytes())
    (tmp_path / "in" / "b.bin").write_bytes(
        gzip.compress((DATA / "otlp-protobuf" / "openinference.pb").read_bytes())
    )
    (tmp_path / "in" / "c.txt").write_text("Dear diary,\nnothing happened.\n")
    (tmp_path / "in" / "d").write_bytes(b"")
    report = import_paths([tmp_path / "in"], tmp_path / "rec")
    assert [s.format for s in report.sources] == ["jaeger-json", "otlp-protobuf", None, None]
    assert [(b.kind, b.count) for b in report.bad] == [("duplicate span id", 10), ("format not known", 1)]
    assert report.bad[1].found.startswith("begins with 'Dear diary,")
    assert report.sources[3].notes == ("empty file",)


def test_a_damaged_file_gives_what_came_before_the_damage(tmp_path: Path) -> None:
    lines = (DATA / "otlp-json" / "collector.jsonl").read_bytes()
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress(lines * 200)[:-40])
    report = import_paths([path], tmp_path / "rec")
    assert report.rows["samples"] > 1000
    assert "damaged file" in {b.kind for b in report.bad}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"Dear diary", r"x: format not known \(begins with 'Dear diary'\); expected a format that"),
        (b"", r"x: empty; expected a format that `ragclinic import --list-formats` names"),
        (b"PK\x03\x04zip", r"x: damaged file \(a zip archive; expected plain, gzip or zstd; unpack it first\)"),
    ],
)
def test_nothing_readable_is_one_clear_line_and_leaves_nothing(data: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(BadInput, match=says):
        import_paths([tmp_path / "x"], tmp_path / "rec")
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_a_folder_that_holds_something_is_not_overwritten(tmp_path: Path) -> None:
    path = otlp(tmp_path / "a.json", *request(1, 0))
    import_paths([path], tmp_path / "rec")
    with pytest.raises(
        BadInput, match="holds something already; expected a new folder; choose another or remove it"
    ):
        import_paths([path], tmp_path / "rec")


@pytest.mark.parametrize("content", ["hashed", "off"])
def test_no_text_reaches_the_disk_where_none_is_wanted(content: Any, tmp_path: Path) -> None:
    samples = [
        p for f in ("otlp-json", "otlp-protobuf", "langfuse-json", "langsmith-runs") for p in (DATA / f).iterdir()
    ]
    paths = [p for p in samples if p.name != "golden.json"]
    report = import_paths(paths, tmp_path / "rec", ImportOptions(policy=ContentPolicy(content=content)))
    for path in report.folder.rglob("*.parquet"):
        told = json.dumps(pq.read_table(path).to_pylist(), default=str)
        assert "get preempted" not in told, path
        assert "prefix cache" not in told, path
    keys = {r.question_key for r in load(report.folder).requests}
    assert keys == {None} if content == "off" else len(keys) > 1


def test_the_recording_says_where_it_came_from_and_holds_no_line_of_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes((DATA / "otlp-json" / "collector.jsonl").read_bytes() + b'{"secret question": ')
    report = import_paths([path], tmp_path / "rec")
    meta = open_recording(report.folder).meta
    assert meta["sources"][0]["bad"] == {"unreadable JSON": 1}
    assert "secret" not in (report.folder / "recording.json").read_text()
    assert {s["format"] for s in meta["sources"]} == {"otlp-json"}


def test_a_bar_shows_how_much_was_read(tmp_path: Path) -> None:
    path = otlp(tmp_path / "spans-of-monday.json", *request(1, 0))
    shown = io.StringIO()
    with BytesProgress(Console(file=shown, force_terminal=True, width=120)) as progress:
        import_paths([path], tmp_path / "rec", progress=progress)
    assert "spans-of-monday.json" in shown.getvalue()
    assert f"{path.stat().st_size}/{path.stat().st_size} bytes" in shown.getvalue()


def test_files_are_seen_without_leaving_a_recording(tmp_path: Path) -> None:
    path = otlp(tmp_path / "a.json", *request(1, 0))
    sight = see([path])
    assert (len(sight.seen.requests), sight.seen.source) == (1, str(path))
    assert sight.report is not None
    assert not sight.report.folder.exists()
    assert "chunks" in sight.seen.missing
    import_paths([path], tmp_path / "rec")
    assert see([tmp_path / "rec"]).seen.requests == sight.seen.requests


app = typer.Typer()
app.command()(import_)


def run(*arguments: str | Path) -> Any:
    """What the command printed, as JSON."""
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.stdout)


def test_the_command_lists_every_format() -> None:
    found = run("--list-formats", "--json")
    assert [f["format"] for f in found] == [r.id for r in READERS]
    assert all(set(f) == {"format", "versions", "signals"} and f["versions"] and f["signals"] for f in found)


def test_the_command_prints_the_account(tmp_path: Path) -> None:
    path = otlp(tmp_path / "a.json", *request(1, 0), span(2, 9, 10, 0), service="rag")
    found = run(path, "--out", tmp_path / "rec", "--json", "--tenant", "user.name")
    assert (found["rows"]["spans"], found["kept"], found["recording"]) == (2, 2, str(tmp_path / "rec"))
    assert [(b["kind"], b["count"]) for b in found["bad"]] == [("negative duration", 1)]
    assert "chunks" in [m["signal"] for m in found["missing_signals"]]


@pytest.mark.parametrize(
    ("lang", "says"),
    [("en", "1 not read, negative duration: first at"), ("zh", "1 行未能读取，negative duration")],
)
def test_the_command_shows_unreadable_rows_by_kind_in_both_languages(lang: str, says: str, tmp_path: Path) -> None:
    path = otlp(tmp_path / "a.json", *request(1, 0), span(2, 9, 10, 0))
    result = CliRunner().invoke(
        app, [str(path), "--out", str(tmp_path / "rec"), "--lang", lang], catch_exceptions=False
    )
    assert says in result.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "ragclinic import: no input; expected files, folders or - for standard input; name one"),
        (["x", "--clock-offset", "5"], "--clock-offset 5: no '=' in it; expected NAME=VALUE"),
        (["x", "--clock-offset", "a=b"], "--clock-offset a=b: no number; expected milliseconds"),
    ],
)
def test_wrong_arguments_are_one_clear_line(arguments: list[str], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
