"""The engine's settings: one frozen object, read once from TOML; a prescription is the same file, partly filled.

Defaults are the treated pipeline; `presets/as_found.toml` is the one most teams have.
"""

import difflib
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ragclinic.errors import BadInput
from ragclinic.signals.records import Content


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LlmSettings(_Group):
    """Which LLM answers. `model` is `smollm2` (embedded), a GGUF path, or the name to ask `url` for."""

    model: str = "smollm2"
    url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    window_tokens: int = Field(8192, ge=256)
    slots: int = Field(1, ge=1, le=64)
    threads: int = Field(0, ge=0, description="0: one for each core")
    batch_tokens: int = Field(512, ge=32, description="tokens of prompt computed between two looks at other slots")
    max_tokens: int = Field(256, ge=1)
    keep_loaded: bool = True
    timeout_s: float = Field(300.0, gt=0)


class EmbedderSettings(_Group):
    """Which model embeds. `use-multilingual` is embedded; with `url` any OpenAI-compatible endpoint."""

    model: str = "use-multilingual"
    url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"


class ChunkingSettings(_Group):
    """How documents are cut, in tokens of the LLM."""

    size_tokens: int = Field(512, ge=16)
    overlap_tokens: int = Field(128, ge=0)


class RetrievalSettings(_Group):
    """How many chunks are fetched for a question, and out of how many.

    With a `pool`, so many nearest chunks are judged again by their best sentence: recall@6 0.84 to 0.89 on CMRC,
    for 4 to 7 ms a question.
    """

    top_k: int = Field(6, ge=1, le=1000)
    pool: int = Field(50, ge=0, le=10_000, description="0: take the nearest chunks as they come")


class PromptSettings(_Group):
    """How the prompt is laid out. `stable-first` puts what changes last, so that a prefix cache can work."""

    order: Literal["stable-first", "volatile-first"] = "stable-first"
    history_turns: int = Field(-1, ge=-1, description="-1: all")
    chunk_order: Literal["score", "document"] = "score"
    language: Literal["en", "zh"] = "en"
    system: str | None = Field(None, description="your own system prompt instead of the shipped one")


class CompilerSettings(_Group):
    """The context compiler: deduplicate, merge overlapping spans, rank sentences, fill a token budget."""

    enabled: bool = True
    deduplicate: bool = True
    merge_overlap: bool = True
    budget_tokens: int = Field(512, ge=0, description="0: no budget")


class CacheSettings(_Group):
    """The answer cache."""

    answers: bool = True
    ttl_s: float = Field(900.0, gt=0)
    max_entries: int = Field(10_000, ge=1)


class DeliverySettings(_Group):
    """How the answer reaches the user."""

    stream: bool = True


class RecordingSettings(_Group):
    """What a recording keeps of prompts and chunks."""

    content: Content = "text"
    sample_ms: int = Field(500, ge=50)


class Settings(_Group):
    """All settings of the engine."""

    llm: LlmSettings = LlmSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    chunking: ChunkingSettings = ChunkingSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    prompt: PromptSettings = PromptSettings()
    compiler: CompilerSettings = CompilerSettings()
    cache: CacheSettings = CacheSettings()
    delivery: DeliverySettings = DeliverySettings()
    recording: RecordingSettings = RecordingSettings()

    def flat(self) -> dict[str, object]:
        """All settings by dotted name, as `{"retrieval.top_k": 6, ...}`."""
        return {
            f"{group}.{name}": value
            for group, values in self.model_dump().items()
            for name, value in values.items()
        }

    def with_changes(self, changes: Mapping[str, object]) -> "Settings":
        """A copy with the dotted names in `changes` replaced; a bad name or value raises `BadInput`."""
        groups: dict[str, dict[str, object]] = self.model_dump()
        for dotted, value in changes.items():
            group, _, name = dotted.partition(".")
            groups.setdefault(group, {})[name] = value
        return _validated(groups, where="settings")


def preset(name: str) -> Settings:
    """The shipped settings of this name: `as_found`."""
    text = resources.files("ragclinic.engine").joinpath("presets", f"{name}.toml").read_text("utf-8")
    return _validated(tomllib.loads(text), where=f"preset {name}")


def load(path: Path) -> Settings:
    """The settings in a TOML file, defaults filled in.

    Raises:
        BadInput: the file is not there, is not TOML, or has an unknown name or a bad value.
    """
    try:
        groups = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BadInput(
            f"{path}: {error.strerror or error}; expected a TOML file of settings; check the path"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(
            f"{path}: not TOML: {error}; expected settings like [retrieval] top_k = 6; mend the line"
        ) from error
    return _validated(groups, where=str(path))


def _validated(groups: Mapping[str, object], where: str) -> Settings:
    try:
        return Settings.model_validate(groups)
    except ValidationError as error:
        first = error.errors()[0]
        dotted = ".".join(str(p) for p in first["loc"])
        if first["type"] == "extra_forbidden":
            known = [*Settings().flat(), *Settings.model_fields]
            nearest = difflib.get_close_matches(dotted, known, n=1, cutoff=0.0)[0]
            raise BadInput(
                f"{where}: unknown setting {dotted}; the nearest known one is {nearest}; rename it"
            ) from error
        raise BadInput(f"{where}: {dotted} = {first['input']!r}: {first['msg']}; mend the value") from error
