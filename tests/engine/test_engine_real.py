"""The whole engine for real: llama.cpp with real weights, the real embedder, a real index, in both languages."""

import time
from pathlib import Path

import psutil
import pytest

from ragclinic.corpora import Document
from ragclinic.diagnosis import diagnose
from ragclinic.engine.embed import BuiltinEmbedder, open_embedder
from ragclinic.engine.index import Index
from ragclinic.engine.ingest import ingest
from ragclinic.engine.session import local_model, open_engine, open_tokenizer
from ragclinic.engine.settings import Settings
from ragclinic.errors import BadInput
from ragclinic.signals.load import load
from ragclinic.signals.recording import open_recording

pytestmark = pytest.mark.slow

DOCUMENTS = (
    Document(
        "kv",
        "KV cache",
        "The KV cache holds keys and values of earlier tokens. It grows by 22.5 KiB a token here.",
    ),
    Document("ttft", "TTFT", "TTFT is the time to the first token. It is mostly prefill, which reads the prompt."),
    Document("前缀", "前缀缓存", "前缀缓存重用两个提示词开头相同的部分。时间戳放在最前面会让它失效。"),
)
SETTINGS = Settings().with_changes({"llm.max_tokens": 8, "llm.window_tokens": 2048, "retrieval.top_k": 2})


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> tuple[Index, BuiltinEmbedder]:
    """A small index of both languages."""
    embedder = open_embedder(SETTINGS.embedder)
    assert isinstance(embedder, BuiltinEmbedder)
    folder = tmp_path_factory.mktemp("real") / "index"
    ingest(DOCUMENTS, folder, SETTINGS.chunking, embedder, open_tokenizer(local_model(SETTINGS)))
    return Index.open(folder, embedder.identity), embedder


@pytest.fixture(scope="module")
def recorded(index: tuple[Index, BuiltinEmbedder], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of four questions, one of them asked twice."""
    folder = tmp_path_factory.mktemp("real") / "rec"
    with open_engine(SETTINGS, *index, recording=folder) as engine:
        pieces: list[str] = []
        first = engine.ask("What does the KV cache hold?", session="a", on_text=pieces.append)
        assert "".join(pieces) == first.text
        assert len(pieces) > 1
        assert engine.ask("what does the kv cache hold", session="b").cached
        assert not engine.ask("What does the KV cache hold?", tenant="other").cached
        engine.ask("时间戳会让前缀缓存失效吗?", session="a")
        time.sleep(1.2)  # two samples of memory
    return folder


def test_every_request_has_its_stages_tokens_and_parts(recorded: Path) -> None:
    seen = load(recorded)
    assert len(seen.requests) == 4
    assert len(seen.probes) == 2
    for request in seen.requests:
        if request.answer_cached:
            continue
        assert [s.name for s in request.stages][-3:] == ["queue", "prefill", "decode"]
        assert request.streamed
        assert request.first_byte_ms is not None
        assert request.first_byte_ms <= request.total_ms
        assert request.output_tokens == 8
        assert sum(p.tokens for p in request.parts) == request.prompt_tokens
        assert next(p.role for p in request.parts) == "system"
        assert {c.doc for c in request.chunks} <= {d.id for d in DOCUMENTS}


def test_the_second_turn_of_a_session_reuses_the_stable_prefix(recorded: Path) -> None:
    later = next(r for r in load(recorded).requests if r.question and "前缀" in r.question)
    assert later.cached_tokens is not None
    assert later.cached_tokens > 40


def test_the_kv_cache_and_the_process_are_sampled(recorded: Path) -> None:
    seen = load(recorded)
    assert seen.kv_bytes_per_token == 23040  # 2 x 30 layers x 3 KV heads x 64 x 2 bytes
    assert any(s.kv_used_tokens for s in seen.memory)
    assert all(s.kv_total_tokens == 2048 for s in seen.memory if s.kv_total_tokens)
    names = set(open_recording(recorded).table("samples").column("name").to_pylist())
    assert {"llamacpp:prompt_tokens_total", "process.memory.usage"} <= names


def test_a_service_within_its_objective_gets_no_finding(recorded: Path) -> None:
    found = diagnose(load(recorded), slo_ms=600_000)
    assert (found.verdict, found.findings) == ("healthy", ()) or found.requests < 10
    assert not found.findings


def test_a_model_loaded_for_every_question_is_named(index: tuple[Index, BuiltinEmbedder], tmp_path: Path) -> None:
    settings = SETTINGS.with_changes({"llm.keep_loaded": False, "cache.answers": False, "llm.max_tokens": 2})
    with open_engine(settings, *index, recording=tmp_path / "rec") as engine:
        for number in range(4):
            engine.ask(f"What is term number {number} in the KV cache?")
    found = diagnose(load(tmp_path / "rec"), slo_ms=1)
    assert "weights-reloaded" in [f.cause for f in found.findings]
    remedy = next(f.remedy for f in found.findings if f.cause == "weights-reloaded")
    assert remedy.settings == {"llm.keep_loaded": True}


def test_the_server_ends_with_the_engine(index: tuple[Index, BuiltinEmbedder]) -> None:
    with open_engine(SETTINGS, *index) as engine:
        pid = engine.llm.pid()
        assert pid is not None
        assert psutil.pid_exists(pid)
    assert not psutil.pid_exists(pid)


def test_an_empty_or_endless_question_is_refused_and_the_engine_goes_on(
    index: tuple[Index, BuiltinEmbedder],
) -> None:
    with open_engine(SETTINGS, *index) as engine:
        for question in ("", "   \n", "why " * 12_500, "为什么" * 16_667):
            with pytest.raises(BadInput, match=r"^question: "):
                engine.ask(question)
        assert engine.ask("What is TTFT about?").text
