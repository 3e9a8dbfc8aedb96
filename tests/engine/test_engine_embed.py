"""Embedders give vectors of length 1, and say in one line what is wrong with a server."""

import json
from collections.abc import Callable

import httpx
import numpy as np
import pytest

from ragclinic.engine.embed import BuiltinEmbedder, RemoteEmbedder, open_embedder
from ragclinic.engine.settings import EmbedderSettings
from ragclinic.errors import BadInput, Unreachable

Handler = Callable[[httpx.Request], httpx.Response]


def vectors_for(request: httpx.Request) -> httpx.Response:
    """One vector a text, unscaled and in the wrong order: its length, one, zero."""
    texts = json.loads(request.content)["input"]
    rows = [{"index": i, "embedding": [float(len(text)), 1.0, 0.0]} for i, text in enumerate(texts)]
    return httpx.Response(200, json={"data": rows[::-1]})


def make_remote(handler: Handler, url: str = "http://host:1") -> tuple[RemoteEmbedder, list[float]]:
    """An embedder on a fake server, and the waits it makes."""
    waits: list[float] = []
    return RemoteEmbedder(url, "m", "key", httpx.MockTransport(handler), waits.append), waits


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://host:1", "http://host:1/v1/embeddings"),
        ("http://host:1/v1/", "http://host:1/v1/embeddings"),
        ("http://host:1/api/v1/embeddings", "http://host:1/api/v1/embeddings"),
    ],
)
def test_a_base_url_may_end_anywhere(url: str, expected: str) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert str(request.url) == expected
        assert request.headers["authorization"] == "Bearer key"
        return vectors_for(request)

    assert len(make_remote(answer, url)[0](["a"])) == 1


def test_vectors_come_back_in_order_and_of_length_one_however_many_there_are() -> None:
    embed, _ = make_remote(vectors_for)
    vectors = embed(["x" * n for n in range(1, 151)])
    assert vectors.shape == (150, 3)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    assert np.all(np.diff(vectors[:, 0] / vectors[:, 1]) > 0.5)  # the lengths, in order


def test_the_identity_is_the_name_and_the_dimension_the_server_has() -> None:
    assert make_remote(vectors_for)[0].identity == "m/3"


def test_a_busy_server_is_asked_again_after_a_while() -> None:
    answers = iter([httpx.Response(429), httpx.Response(503)])
    embed, waits = make_remote(lambda request: next(answers, None) or vectors_for(request))
    assert len(embed(["a"])) == 1
    assert waits == [1.0, 4.0]


def refuse(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("Connection refused")


@pytest.mark.parametrize(
    ("handler", "kind", "message"),
    [
        (refuse, Unreachable, "Connection refused; expected an embedding server; start it or check embedder.url"),
        (
            lambda _: httpx.Response(503, text="busy\nnow"),
            Unreachable,
            "HTTP 503: busy now; expected an embedding",
        ),
        (
            lambda _: httpx.Response(401, json={"error": {"message": "bad key"}}),
            BadInput,
            "HTTP 401: bad key; expected vectors of model 'm'; check embedder.model, embedder.url and the key",
        ),
        (
            lambda _: httpx.Response(200, text="<html>"),
            Unreachable,
            "an answer without vectors: '<html>'; expected",
        ),
        (lambda _: httpx.Response(200, json={"data": []}), Unreachable, "without vectors"),
        (
            lambda _: httpx.Response(200, json={"data": [{"index": 0, "embedding": [0.0, 0.0]}]}),
            Unreachable,
            "1 usable vectors for 1 texts",
        ),
    ],
    ids=["refused", "busy", "key", "no JSON", "none", "of no length"],
)
def test_a_server_that_gives_no_vectors_is_named_with_what_to_do(
    handler: Handler, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind) as caught:
        make_remote(handler)[0](["a"])
    assert str(caught.value).startswith("http://host:1/v1/embeddings: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_embedded_model_is_refused_with_the_known_one() -> None:
    with pytest.raises(
        BadInput, match=r"embedder.model = 'bge-m3': not embedded; expected 'use-multilingual', or"
    ):
        open_embedder(EmbedderSettings(model="bge-m3"))


@pytest.mark.slow
def test_the_embedded_model_puts_a_question_near_its_answer_in_two_languages() -> None:
    embed = open_embedder(EmbedderSettings())
    assert isinstance(embed, BuiltinEmbedder)
    texts = ["How do I open a file?", "Use open() to read a file.", "Cats sleep all day.", "怎样打开一个文件？"]
    vectors = embed(texts)
    assert embed.identity == f"use-multilingual/{vectors.shape[1]}"
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-4)
    near = vectors @ vectors[0]
    assert near[1] > near[2] + 0.2
    assert near[3] > near[2] + 0.2
    assert embed([]).shape == (0, 512)
    many = BuiltinEmbedder(workers=3)(texts * 5)
    np.testing.assert_allclose(many, np.tile(vectors, (5, 1)), atol=1e-5)  # shared out, in the same order
