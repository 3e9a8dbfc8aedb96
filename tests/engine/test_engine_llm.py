"""The LLM client speaks to the real llama.cpp server, and says in one line what is wrong with any other."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ragclinic.engine.llm.backend import EmbeddedLlm
from ragclinic.engine.llm.client import ChatClient
from ragclinic.engine.settings import LlmSettings
from ragclinic.errors import BadInput, Unreachable


@contextmanager
def serving(status: int, body: bytes) -> Iterator[str]:
    """A server that gives every request the same answer."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Stays silent."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


MESSAGES = [{"role": "user", "content": "hi"}]


def test_an_endpoint_without_timings_still_gives_text_and_counts() -> None:
    body = {"choices": [{"message": {"content": "hello"}}], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
    with serving(200, json.dumps(body).encode()) as url:
        client = ChatClient(url, "m")
        found = client.chat(MESSAGES, 8)
        client.close()
    assert (found.text, found.prompt_tokens, found.output_tokens) == ("hello", 9, 2)
    assert (found.prefill_ms, found.cached_tokens) == (None, None)


def test_progress_events_without_text_are_no_first_token() -> None:
    events = [
        {"choices": [{"delta": {"role": "assistant", "content": None}}]},
        {"choices": [{"delta": {"content": "a"}}]},
    ]
    body = "".join(f"data: {json.dumps(e)}\n\n" for e in events) + "data: [DONE]\n\n"
    pieces: list[str] = []
    with serving(200, body.encode()) as url:
        client = ChatClient(url, "m")
        found = client.chat(MESSAGES, 8, pieces.append)
        client.close()
    assert pieces == ["a"]
    assert found.first_text_ns is not None


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (500, b"boom", "HTTP 500: boom"),
        (401, b'{"error": {"message": "bad key"}}', "HTTP 401: bad key"),
        (200, b"<html>", "no JSON"),
        (200, b"", "no JSON"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_server_that_is_none_is_named(status: int, body: bytes, message: str, streamed: bool) -> None:
    with serving(status, body) as url:
        client = ChatClient(url, "m")
        with pytest.raises(Unreachable, match=message):
            client.chat(MESSAGES, 8, (lambda _: None) if streamed else None)
        client.close()


def test_nobody_there_is_one_clear_line() -> None:
    client = ChatClient("http://127.0.0.1:9/v1", "m")
    with pytest.raises(Unreachable, match=r"LLM at http://127\.0\.0\.1:9: .*start it or mend llm\.url"):
        client.chat(MESSAGES, 8)
    client.close()


def test_a_key_never_shows_in_an_error() -> None:
    client = ChatClient("http://127.0.0.1:9/v1", "m", api_key="sk-secret")
    with pytest.raises(Unreachable) as caught:
        client.chat(MESSAGES, 8)
    client.close()
    assert "sk-secret" not in str(caught.value) + repr(caught.value.__cause__)


@pytest.mark.slow
def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF but not really" * 100)
    with pytest.raises(BadInput, match=r"llama\.cpp cannot load .*model\.gguf: .*mend llm\.model"):
        EmbeddedLlm(path, LlmSettings()).load()


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"is not there; expected a GGUF file; mend llm\.model"):
        EmbeddedLlm(tmp_path / "no.gguf", LlmSettings()).load()
