"""Every bad input ends in one clear line on standard error and exit status 2, and nothing half-written."""

import subprocess
import sys
from pathlib import Path

import pytest

from ragclinic.signals.content import ContentPolicy
from ragclinic.signals.recording import RecordingWriter, segments
from ragclinic.signals.records import Span


def ragclinic(*arguments: str | Path, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """Runs the command line as a user would."""
    return subprocess.run(
        [sys.executable, "-m", "ragclinic.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cwd or Path.home()), "COLUMNS": "100", "NO_COLOR": "1"},
    )


def record(folder: Path, totals_ms: list[int]) -> Path:
    """A recording of requests of which only the whole time is known."""
    with RecordingWriter(folder, {}, ContentPolicy()) as writer:
        for number, ms in enumerate(totals_ms):
            start = number * 10**9
            writer.add(Span(f"t{number}", f"s{number}", None, "request", start, start + ms * 10**6))
    return folder


def one_line(done: "subprocess.CompletedProcess[str]") -> str:
    """The only line on standard error of a command that refused its input."""
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.strip().splitlines()
    return line


def test_help_shows_the_flow() -> None:
    done = ragclinic("--help")
    assert done.returncode == 0
    for word in ("demo", "ingest", "ask", "diagnose", "verify", "signals → diagnose → prescription"):
        assert word in done.stdout


@pytest.mark.parametrize("command", ["demo", "ingest", "ask", "diagnose", "verify"])
def test_the_help_of_each_command_has_an_example(command: str) -> None:
    done = ragclinic(command, "--help")
    assert done.returncode == 0
    assert f"Example: ragclinic {command}" in " ".join(done.stdout.replace("│", "").split())


def test_a_damaged_segment_is_named(tmp_path: Path) -> None:
    folder = record(tmp_path / "rec", [100, 200])
    segments(folder, "spans")[0].write_bytes(b"not parquet")
    assert "damaged segment" in one_line(ragclinic("diagnose", folder))


def test_a_condition_that_is_no_sql_is_refused(tmp_path: Path) -> None:
    folder = record(tmp_path / "rec", [100, 200])
    assert one_line(ragclinic("diagnose", folder, "--where", "tenant ===")).startswith("ragclinic: SQL:")


def test_two_requests_without_spans_are_unknown_and_say_what_is_missing(tmp_path: Path) -> None:
    done = ragclinic("diagnose", record(tmp_path / "rec", [12_000, 15_000]), "--json")
    assert done.returncode == 3, done.stderr
    assert '"verdict": "unknown"' in done.stdout
    assert '"would_settle"' in done.stdout


def test_a_slow_service_far_within_the_objective_is_healthy(tmp_path: Path) -> None:
    folder = record(tmp_path / "rec", [900 + i for i in range(30)])
    done = ragclinic("diagnose", folder, "--slo-ms", "60000", "--json")
    assert done.returncode == 0, done.stderr
    assert '"verdict": "healthy"' in done.stdout


def test_an_index_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "expected an index" in one_line(ragclinic("ask", "What is TTFT?", "--index", tmp_path / "none"))


def test_settings_with_an_unknown_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text("[retrieval]\ntop_kk = 3\n")
    line = one_line(ragclinic("ask", "What is TTFT?", "--settings", path))
    assert "the nearest known one is retrieval.top_k" in line


def test_verify_with_a_prescription_needs_an_index(tmp_path: Path) -> None:
    folder = record(tmp_path / "rec", [100, 200])
    line = one_line(ragclinic("verify", folder, tmp_path / "after", "--prescription", folder / "p.toml"))
    assert "--index: missing" in line
    assert not (tmp_path / "after").exists()


def test_a_report_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = record(tmp_path / "rec", [100, 200])
    (tmp_path / "file").write_text("")
    line = one_line(ragclinic("diagnose", folder, "-o", tmp_path / "file" / "report.html"))
    assert "choose another" in line
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "rec"]
