"""One client for llama.cpp and any OpenAI-compatible endpoint: `/v1/chat/completions`, streamed or not.

llama.cpp tells its own timings; another server tells at most token counts, and then the stages stay unknown.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from ragclinic.errors import BadInput, Unreachable

Message = Mapping[str, str]
OnText = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Generation:
    """One answer. Times on this process's clock (`_ns` since the epoch); `None` where the server tells nothing."""

    text: str
    start_ns: int
    end_ns: int
    first_text_ns: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    prefill_ms: float | None = None
    decode_ms: float | None = None


class ChatClient:
    """Asks one server. Safe to use from several threads."""

    def __init__(self, url: str, model: str, api_key: str | None = None, timeout_s: float = 300.0) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        self.model = model
        headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        # llama.cpp closes a kept connection after a streamed answer without saying so: 8 of 30 calls that reused
        # one failed when measured. A new connection on the loopback costs 0.2 ms.
        self._client = httpx.Client(
            headers=headers,
            timeout=httpx.Timeout(timeout_s, connect=10.0),
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    def chat(self, messages: Sequence[Message], max_tokens: int, on_text: OnText | None = None) -> Generation:
        """The answer; with `on_text` it is streamed and each piece of text passed on as it comes.

        Raises:
            Unreachable: no connection, a time-out, or a server error.
            BadInput: the prompt does not fit the server's window.
        """
        body: dict[str, Any] = {
            "model": self.model,
            "messages": list(messages),
            "max_tokens": max_tokens,
            "temperature": 0,
            "seed": 1,
        }
        start_ns = time.time_ns()
        try:
            if on_text is None:
                response = self._client.post(f"{self.url}/v1/chat/completions", json=body)
                self._check(response)
                return _whole(response.json(), start_ns, time.time_ns())
            body |= {"stream": True, "stream_options": {"include_usage": True}}
            with self._client.stream("POST", f"{self.url}/v1/chat/completions", json=body) as stream:
                if stream.is_error:
                    stream.read()
                self._check(stream)
                return _streamed(_events(stream), on_text, start_ns)
        except httpx.TransportError as error:
            what = str(error) or type(error).__name__
            raise Unreachable(
                f"LLM at {self.url}: {what}; expected an OpenAI-compatible server; start it or mend llm.url"
            ) from error
        except ValueError as error:
            raise Unreachable(
                f"LLM at {self.url}: no JSON ({error}); expected an OpenAI-compatible server; mend llm.url"
            ) from error

    def get(self, path: str) -> httpx.Response:
        """A page of the server, as `/slots`, within a second."""
        return self._client.get(f"{self.url}{path}", timeout=1.0)

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def _check(self, response: httpx.Response) -> None:
        if response.is_success:
            return
        message = _message(response)
        if response.status_code == httpx.codes.BAD_REQUEST and "context" in message:
            raise BadInput(f"prompt: {message}; raise llm.window_tokens, or lower retrieval.top_k or the budget")
        raise Unreachable(f"LLM at {self.url}: HTTP {response.status_code}: {message}; mend llm.url, model or key")


def _message(response: httpx.Response) -> str:
    try:
        error = response.json()["error"]
        text = str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError):
        text = response.text
    return " ".join(text.split())[:300]


def _whole(body: dict[str, Any], start_ns: int, end_ns: int) -> Generation:
    choices = body.get("choices") or [{}]
    text = choices[0].get("message", {}).get("content") or ""
    return Generation(text=text, start_ns=start_ns, end_ns=end_ns, **_counts(body))


def _streamed(events: Iterator[dict[str, Any]], on_text: OnText, start_ns: int) -> Generation:
    pieces: list[str] = []
    first_ns: int | None = None
    counts: dict[str, Any] = {}
    event: dict[str, Any] | None = None
    for event in events:
        choices = event.get("choices") or [{}]
        text = choices[0].get("delta", {}).get("content")
        if text:
            first_ns = first_ns or time.time_ns()
            pieces.append(text)
            on_text(text)
        counts |= {k: v for k, v in _counts(event).items() if v is not None}
    if event is None:
        raise ValueError("a stream without events")
    return Generation("".join(pieces), start_ns, time.time_ns(), first_ns, **counts)


def _counts(body: dict[str, Any]) -> dict[str, Any]:
    usage, timings = body.get("usage") or {}, body.get("timings") or {}
    cached = timings.get("cache_n")
    details = usage.get("prompt_tokens_details") or {}
    return {
        # `timings` count computed tokens apart from cached ones, `usage` counts both together
        "prompt_tokens": usage.get("prompt_tokens", timings["prompt_n"] + cached if timings else None),
        "cached_tokens": details.get("cached_tokens", cached),
        "output_tokens": usage.get("completion_tokens", timings.get("predicted_n")),
        "prefill_ms": timings.get("prompt_ms"),
        "decode_ms": timings.get("predicted_ms"),
    }


def _events(stream: httpx.Response) -> Iterator[dict[str, Any]]:
    for line in stream.iter_lines():
        data = line.removeprefix("data:").strip()
        if line.startswith("data:") and data != "[DONE]":
            event = json.loads(data)
            if "error" in event:
                raise ValueError(str(event["error"])[:300])
            yield event
