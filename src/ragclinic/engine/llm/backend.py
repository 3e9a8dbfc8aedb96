"""Where answers come from: the embedded server, started when first needed, or a server that runs elsewhere."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import httpx

from ragclinic.engine.llm import process
from ragclinic.engine.llm.client import ChatClient, Generation, Message, OnText
from ragclinic.engine.settings import LlmSettings


class Llm(Protocol):
    """An LLM that can be asked."""

    model: str

    def ready(self) -> bool:
        """Whether an answer can begin at once, without loading the model."""

    def load(self) -> None:
        """Loads the model where it is not loaded."""

    def unload(self) -> None:
        """Gives the model's memory back."""

    def chat(self, messages: Sequence[Message], max_tokens: int, on_text: OnText | None) -> Generation:
        """One answer, streamed to `on_text` where it is given."""

    def close(self) -> None:
        """Ends everything."""

    def pid(self) -> int | None:
        """The process whose memory is the model's, where it runs on this machine."""

    def get(self, path: str) -> httpx.Response:
        """A page of the server, as `/slots`."""

    def kv_bytes_per_token(self) -> float | None:
        """Bytes of KV cache for each token, where the server tells."""


class EmbeddedLlm:
    """llama.cpp in a process of its own."""

    def __init__(self, model_path: Path, settings: LlmSettings) -> None:
        self.model = settings.model
        self._path = model_path
        self._settings = settings
        self._lock = threading.Lock()
        self._server: process.LlamaProcess | None = None
        self._client: ChatClient | None = None
        self._kv_bytes_per_token: float | None = None

    def ready(self) -> bool:
        """Whether the server runs."""
        return self._client is not None

    def load(self) -> None:
        """Starts the server and waits until it answers; a second call does nothing."""
        with self._lock:
            if self._server is None:
                self._server = process.start(self._path, self._settings)
                self._kv_bytes_per_token = self._server.kv_bytes_per_token
                self._client = ChatClient(self._server.url, self.model, timeout_s=self._settings.timeout_s)

    def unload(self) -> None:
        """Ends the server."""
        with self._lock:
            if self._client is not None:
                self._client.close()
            if self._server is not None:
                self._server.stop()
            self._client = self._server = None

    def chat(self, messages: Sequence[Message], max_tokens: int, on_text: OnText | None) -> Generation:
        """One answer."""
        return self._running().chat(messages, max_tokens, on_text)

    def close(self) -> None:
        """Ends the server."""
        self.unload()

    def pid(self) -> int | None:
        """The server's process."""
        server = self._server
        return None if server is None else server.pid

    def get(self, path: str) -> httpx.Response:
        """A page of the server."""
        return self._running().get(path)

    def kv_bytes_per_token(self) -> float | None:
        """From the server's log."""
        return self._kv_bytes_per_token

    def _running(self) -> ChatClient:
        self.load()
        client = self._client
        if client is None:
            raise httpx.ConnectError("the embedded server was unloaded meanwhile")
        return client


class RemoteLlm:
    """A server that runs elsewhere; it is always loaded."""

    def __init__(self, url: str, settings: LlmSettings, environ: Mapping[str, str]) -> None:
        self.model = settings.model
        self._client = ChatClient(url, settings.model, environ.get(settings.api_key_env), settings.timeout_s)
        self.chat = self._client.chat
        self.get = self._client.get
        self.close = self._client.close

    def ready(self) -> bool:
        """Always: loading is the server's own affair."""
        return True

    def load(self) -> None:
        """Nothing to do."""

    def unload(self) -> None:
        """Nothing to do."""

    def pid(self) -> int | None:
        """Not on this machine."""
        return None

    def kv_bytes_per_token(self) -> float | None:
        """Not known."""
        return None
