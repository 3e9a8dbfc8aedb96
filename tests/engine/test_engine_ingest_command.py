"""`ragclinic ingest`: the summary on standard output, the talk on standard error, one line for bad input."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SETTINGS = """
[llm]
url = "http://127.0.0.1:9/v1"
model = "any"
"""


def ingest(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs the command as a user does."""
    command = [sys.executable, "-m", "ragclinic.cli", "ingest", *arguments]
    environ = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env=environ, timeout=120)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        (None, b"", "ragclinic: docs: no files in it; expected Markdown, text, HTML or PDF; put some there"),
        ("a.bin", b"\0\1\2", "ragclinic: docs/a.bin: binary data; expected Markdown, text, HTML or PDF"),
        ("cut.pdf", b"%PDF-1.7 cut", "ragclinic: docs/cut.pdf: PDF cut off: no end mark; expected a whole file"),
    ],
    ids=["empty folder", "binary file", "truncated PDF"],
)
def test_bad_input_is_one_line_and_status_2(name: str | None, data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "settings.toml").write_text(SETTINGS)
    if name:
        (tmp_path / "docs" / name).write_bytes(data)
    done = ingest("docs", "--index", "index", "--settings", "settings.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    said = [line for line in done.stderr.splitlines() if line.startswith("ragclinic: ")]
    assert len(said) == 1
    assert said[0].startswith(message)
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "index").exists()


@pytest.mark.slow
def test_a_folder_is_ingested_with_the_embedded_embedder_and_again_in_no_time(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "settings.toml").write_text(SETTINGS)
    (tmp_path / "docs" / "guide.md").write_text("# Guide\n\nOpen the valve slowly. 慢慢打开阀门。\n")
    (tmp_path / "docs" / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    with (tmp_path / "docs" / "big.txt").open("wb") as file:
        file.truncate(200_000_000)
    arguments = ("docs", "--settings", "settings.toml", "--chunk-tokens", "64", "--overlap-tokens", "16")
    done = ingest(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout == "ragclinic-index: 1 documents, 1 chunks, 3 sentences (1 written, 0 unchanged, 2 left out)\n"
    )
    assert "left out big.txt: 200 MB; expected at most 50 MB; split it or raise --max-file-mb" in done.stderr
    assert "left out photo.png: a PNG picture; expected Markdown, text, HTML or PDF" in done.stderr
    again = ingest(*arguments, cwd=tmp_path)
    assert again.stdout.endswith("(0 written, 1 unchanged, 2 left out)\n")
    other = ingest("docs", "--settings", "settings.toml", "--chunk-tokens", "128", cwd=tmp_path)
    assert other.returncode == 2
