"""`Seen`: all that a diagnosis may look at, built once from whatever was read.

One `Request` is one question of one user with everything known of it, on the user's clock. Unknown is `None`:
a cause that needs it answers *cannot tell* and names what is missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ragclinic.signals.records import Chunk, Part


@dataclass(frozen=True, slots=True)
class Stage:
    """A stretch of a request, in milliseconds after its arrival: `embed`, `search`, `prefill`, `decode` ..."""

    name: str
    start_ms: float
    end_ms: float

    @property
    def duration_ms(self) -> float:
        """How long the stage took."""
        return self.end_ms - self.start_ms


@dataclass(frozen=True, slots=True)
class Request:
    """One question and all that was seen of it.

    `first_byte_ms` and `total_ms` are on the user's clock from arrival; `prompt_tokens` includes
    `cached_tokens`. `stages` do not overlap and are sorted; what they leave out is unaccounted time.
    `kind` is `user`, or `probe` for the two calibration calls that an engine of ours makes when it starts.
    """

    id: str
    arrival_ns: int
    total_ms: float
    first_byte_ms: float | None = None
    kind: str = "user"
    tenant: str | None = None
    session: str | None = None
    error: str | None = None
    question: str | None = None
    question_key: str | None = None
    answer: str | None = None
    answer_cached: bool | None = None
    streamed: bool | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    window_tokens: int | None = None
    stages: tuple[Stage, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    parts: tuple[Part, ...] = ()

    @property
    def computed_tokens(self) -> int | None:
        """Prompt tokens that the server had to read anew."""
        if self.prompt_tokens is None:
            return None
        return self.prompt_tokens - (self.cached_tokens or 0)

    def stage_ms(self, *names: str) -> float | None:
        """Milliseconds spent in the named stages together, or None where none of them was seen."""
        found = [s.duration_ms for s in self.stages if s.name in names]
        return sum(found) if found else None

    def role_tokens(self, *roles: str) -> int | None:
        """Prompt tokens in parts of these roles, or None where the parts of the prompt are unknown."""
        if not self.parts:
            return None
        return sum(p.tokens for p in self.parts if p.role in roles)


@dataclass(frozen=True, slots=True)
class MemorySample:
    """Memory at one moment. `used / total` is the device's; `kv_used / kv_total` the KV cache's, in tokens."""

    time_ns: int
    used_bytes: float | None = None
    total_bytes: float | None = None
    kv_used_tokens: float | None = None
    kv_total_tokens: float | None = None

    @property
    def pressure(self) -> float | None:
        """Used over total, 0..1, of the device or of the KV cache, whichever is higher."""
        shares = [
            used / total
            for used, total in (
                (self.used_bytes, self.total_bytes),
                (self.kv_used_tokens, self.kv_total_tokens),
            )
            if used is not None and total
        ]
        return min(1.0, max(shares)) if shares else None


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything seen, requests in order of arrival.

    `settings` is the engine's own settings where it was our engine (dotted names, as in a prescription), else
    empty. `kv_bytes_per_token` comes from the server's log or the model's header. `slots` is how many requests
    the server runs at once. `missing` are signals that the files it was imported from lack, each with the line
    that turns it on.
    """

    source: str
    requests: tuple[Request, ...] = ()
    memory: tuple[MemorySample, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    model: str | None = None
    slots: int | None = None
    kv_bytes_per_token: float | None = None
    probes: tuple[Request, ...] = ()
    notes: tuple[str, ...] = ()
    machine: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
