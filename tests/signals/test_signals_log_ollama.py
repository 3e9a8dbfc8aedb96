import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragclinic.signals.readers import log_ollama, log_ollama_ps, log_ollama_verbose
from ragclinic.signals.readers.durations import duration_ns
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import Sample, Span
from ragclinic.signals.requests import build_requests
from ragclinic.signals.seen import Request

DATA = Path(__file__).parents[1] / "data"
GIB = 1024.0**3


def make_read(reader: Reader, data: bytes) -> tuple[list[Sample], tuple[Request, ...], ReadLog]:
    log = ReadLog()
    found = list(reader.read(io.BytesIO(data), Origin("o", modified_ns=10**18), log, ReadOptions()))
    requests = build_requests([r for r in found if isinstance(r, Span)])
    return [r for r in found if isinstance(r, Sample)], requests, log


def values(samples: list[Sample], name: str) -> list[float]:
    return [s.value for s in samples if s.name == name]


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1m2s", 62_000_000_000),
        ("6.674368042s", 6_674_368_042),
        ("541.2ms", 541_200_000),
        ("73.1µs", 73_100),
        ("73.1μs", 73_100),
        ("73.1us", 73_100),
        ("955ns", 955),
        ("1h0m1.5s", 3_601_500_000_000),
        ("0s", 0),
    ],
)
def test_durations_of_go_and_rust(text: str, ns: int) -> None:
    assert duration_ns(text) == ns


@pytest.mark.parametrize("text", ["", "s", "1", "5 minutes", "-1s", "99999999h", "nan"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        duration_ns(text)


def test_gin_lines_become_requests_with_the_load_that_delayed_them() -> None:
    _, requests, log = make_read(log_ollama.READER, (DATA / "ollama-log/old.log").read_bytes())
    chat = next(r for r in requests if r.total_ms == pytest.approx(50674.368042))
    assert chat.stage_ms("load") == pytest.approx(29960, abs=1000)
    assert chat.window_tokens == 2048
    failed = next(r for r in requests if r.error)
    assert (failed.error, failed.total_ms) == ("HTTP 500", 62_000)
    assert len(requests) == 3
    assert {b.kind: b.count for b in log.bad} == {"broken line": 2}


def test_offload_truncation_and_settings_are_told() -> None:
    found, _, _ = make_read(log_ollama.READER, (DATA / "ollama-log/old.log").read_bytes())
    assert values(found, "ollama.log.layers_offloaded") == [44.0, 42.0]
    assert values(found, "ollama.log.layers_total") == [81.0, 43.0]
    assert values(found, "llamacpp.log.layers_offloaded") == [44.0]
    assert values(found, "ollama.log.memory_required_bytes") == [127.4 * GIB]
    assert values(found, "ollama.log.kv_bytes") == [19.5 * GIB]
    assert values(found, "ollama.log.output_layer_on_cpu") == [1.0]
    assert values(found, "ollama.log.truncated.prompt_tokens") == [5065.0]
    assert values(found, "ollama.log.num_parallel") == [1.0]
    assert values(found, "ollama.log.keep_alive_s") == [300.0]
    assert values(found, "ollama.log.vram_not_recovered_s") == [5.2]
    assert values(found, "hw.gpu.memory.limit") == [23.6 * GIB]


def test_newer_versions_give_stages_and_tokens_through_llama_cpp() -> None:
    found, requests, _ = make_read(log_ollama.READER, (DATA / "ollama-log/new.log").read_bytes())
    (request,) = requests
    assert request.total_ms == 7500
    assert request.stage_ms("prefill") == pytest.approx(2120)
    assert request.stage_ms("decode") == pytest.approx(1000)
    assert (request.prompt_tokens, request.output_tokens) == (1911, 100)
    assert values(found, "ollama.log.model_load_s") == [3.2]
    assert values(found, "ollama.log.default_window_tokens") == [32768.0]


def test_the_log_is_told_from_that_of_llama_cpp() -> None:
    assert log_ollama.sniff((DATA / "ollama-log/new.log").read_bytes()) > 0.9
    assert log_ollama.sniff((DATA / "llamacpp-log/own.log").read_bytes()) == 0


def test_colours_of_a_terminal_are_taken_off() -> None:
    line = (
        b'[GIN] 2025/05/09 - 15:14:30 |\x1b[97;42m 200 \x1b[0m| 2s | ::1 |\x1b[97;46m POST \x1b[0m "/api/chat"\n'
    )
    _, requests, _ = make_read(log_ollama.READER, line)
    assert [r.total_ms for r in requests] == [2000]


def test_ps_tells_how_much_lies_on_the_gpu() -> None:
    found, _, log = make_read(log_ollama_ps.READER, (DATA / "ollama-ps/ps.txt").read_bytes())
    shares = {s.labels["model"]: s.value for s in found if s.name == "ollama.ps.gpu_share"}
    assert shares == {"qwen3:32b": 0.95, "nomic-embed-text:v1.5": 1.0, "llama3:8b": 0.0}
    assert values(found, "ollama.ps.window_tokens") == [32768.0, 2048.0]
    assert values(found, "ollama.ps.size_bytes")[1] == 595e6
    assert (log.kept, log.skipped, log.bad_rows) == (3, 2, 1)


def test_verbose_blocks_become_requests_and_a_missing_count_stays_unknown() -> None:
    _, requests, log = make_read(log_ollama_verbose.READER, (DATA / "ollama-verbose/run.txt").read_bytes())
    first, second = requests
    assert [s.name for s in first.stages] == ["load", "prefill", "decode"]
    assert first.total_ms == pytest.approx(6674.368042)
    assert (first.prompt_tokens, first.output_tokens) == (1411, 97)
    assert second.prompt_tokens is None
    assert second.stage_ms("load") == pytest.approx(58500)
    assert log.skipped == 2


@given(st.text(max_size=80), st.integers(0, 4000))
def test_any_text_among_the_lines_is_survived(data: str, place: int) -> None:
    for reader, name in (
        (log_ollama.READER, "ollama-log/old.log"),
        (log_ollama.READER, "ollama-log/new.log"),
        (log_ollama_ps.READER, "ollama-ps/ps.txt"),
        (log_ollama_verbose.READER, "ollama-verbose/run.txt"),
    ):
        text = (DATA / name).read_bytes()
        text = text[: place % len(text)] + data.encode("utf-8", "replace") + text[place % len(text) :]
        reader.sniff(text)
        _, requests, log = make_read(reader, text)
        assert log.rows == sum(
            1 for row in text.split(b"\n") if row.strip() and row.decode("utf-8", "replace").strip()
        )
        assert all(r.total_ms >= 0 for r in requests)
