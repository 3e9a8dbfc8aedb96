"""Starts and ends the embedded llama.cpp server."""

import json
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import httpx

from ragclinic.engine.settings import LlmSettings
from ragclinic.errors import BadInput, MissingExtra, Unreachable

START_TIMEOUT_S = 120.0
KV_BUFFER = re.compile(r"KV buffer size\s*=\s*([\d.]+)\s*MiB")
MIB = 1024 * 1024


@dataclass
class LlamaProcess:
    """A running llama.cpp server. `kv_bytes_per_token` is read from the server's own log."""

    url: str
    process: "subprocess.Popen[bytes]" = field(repr=False)
    kv_bytes_per_token: float | None
    log: IO[bytes] = field(repr=False)

    @property
    def pid(self) -> int:
        """The process id, whose memory is the model's memory."""
        return self.process.pid

    def stop(self) -> None:
        """Ends the server."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.log.close()


def start(model_path: Path, settings: LlmSettings) -> LlamaProcess:
    """Starts the server and waits until it answers.

    Raises:
        BadInput: the model cannot be loaded; the message holds the server's reason.
        Unreachable: the server does not come up in time.
    """
    try:
        import xllamacpp  # noqa: F401  (fails here with a clear message, not in the child)
    except ImportError as error:
        raise MissingExtra("xllamacpp", "local") from error
    if not model_path.is_file():
        raise BadInput(f"llm.model: {model_path} is not there; expected a GGUF file; mend llm.model")
    log = tempfile.TemporaryFile(prefix="ragclinic-llama-")  # noqa: SIM115  (lives as long as the server)
    process = subprocess.Popen(
        [sys.executable, "-m", "ragclinic.engine.llm.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,  # Ctrl-C is the parent's to handle: it finishes what it records first
    )
    config = {
        "model_path": str(model_path),
        "window_tokens": settings.window_tokens,
        "slots": settings.slots,
        "threads": settings.threads,
        "batch_tokens": settings.batch_tokens,
    }
    server = LlamaProcess("", process, None, log)
    try:
        server.url = _address(process, config, model_path, log)
        _wait_until_ready(server, model_path)
    except BaseException:
        server.stop()
        raise
    server.kv_bytes_per_token = _kv_bytes_per_token(_text(log), settings.window_tokens * settings.slots)
    return server


def _address(
    process: "subprocess.Popen[bytes]", config: dict[str, object], model_path: Path, log: IO[bytes]
) -> str:
    if process.stdin is None or process.stdout is None:
        raise Unreachable("llama.cpp: its process has no pipes; try again")
    process.stdin.write(json.dumps(config).encode() + b"\n")
    process.stdin.flush()
    for line in process.stdout:
        if line.startswith(b'{"address"'):
            return str(json.loads(line)["address"])
    raise BadInput(_refusal(model_path, _text(log)))


def _wait_until_ready(server: LlamaProcess, model_path: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    with httpx.Client(timeout=5) as client:
        while time.monotonic() < deadline:
            if server.process.poll() is not None:
                raise BadInput(_refusal(model_path, _text(server.log)))
            try:
                if client.get(f"{server.url}/health").status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass  # the socket opens a moment after the address is known
            time.sleep(0.02)
    raise Unreachable(f"llama.cpp with {model_path}: not ready after {START_TIMEOUT_S:.0f} s; try a smaller model")


def _refusal(model_path: Path, log: str) -> str:
    errors = [line for line in log.splitlines() if " E " in line or "rror" in line]
    reason = errors[0].strip() if errors else "it ended at once"
    return (
        f"llama.cpp cannot load {model_path}: {reason}; expected a GGUF model that fits in memory; mend llm.model"
    )


def _text(log: IO[bytes]) -> str:
    log.flush()
    log.seek(0)
    return log.read().decode("utf-8", "replace")


def _kv_bytes_per_token(log: str, tokens: int) -> float | None:
    sizes = KV_BUFFER.findall(log)
    return sum(float(s) for s in sizes) * MIB / tokens if sizes else None
