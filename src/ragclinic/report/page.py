"""What the HTML page shows: the view model, filled by the commands from a diagnosis and a comparison.

Every part but `diagnosis` and `before` may be absent; its section is then left out. `before` is the run that was
diagnosed, `after` the same questions with the prescription.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ragclinic.diagnosis.compare_types import Comparison
from ragclinic.diagnosis.types import Diagnosis, StageShare
from ragclinic.signals.records import PartRole


@dataclass(frozen=True, slots=True)
class HeatPoint:
    """One request on the heat map: both axes 0..1, and its total time in seconds."""

    memory: float
    redundancy: float
    seconds: float


@dataclass(frozen=True, slots=True)
class ZoneShares:
    """Shares (0..1) of all request time spent at heat 0-30, 31-70 and 71-100; they sum to 1."""

    ideal: float
    coupled: float
    contended: float


@dataclass(frozen=True, slots=True)
class FlameNode:
    """A frame of the flame graph: mean ms of the requests around P95, its children's time included."""

    name: str
    value_ms: float
    children: tuple["FlameNode", ...] = ()


@dataclass(frozen=True, slots=True)
class RunView:
    """One run as the charts need it.

    `total_ms` and `ttft_ms` hold one sample per request. `budget` is of the requests around P95 and sums to
    `p95_ms`.
    """

    p95_ms: float
    budget: tuple[StageShare, ...] = ()
    total_ms: Sequence[float] = ()
    ttft_ms: Sequence[float] = ()
    points: tuple[HeatPoint, ...] = ()
    zones: ZoneShares | None = None
    flame: FlameNode | None = None


@dataclass(frozen=True, slots=True)
class PriceTag:
    """What one chunk of one prompt cost, and whether the answer used it. None is unknown.

    `kv_byte_seconds` is KV cache bytes times seconds held; `overlap_tokens` are shared with other chunks of the
    prompt; `kept` tells whether the treated prompt still holds some of it (None without a treated prompt).
    """

    rank: int | None
    doc: str | None
    tokens: float | None
    prefill_ms: float | None
    kv_byte_seconds: float | None
    overlap_tokens: float | None
    used: bool | None = None
    kept: bool | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a prompt in reading order. `why` says in a word or two why it was cut, or kept.

    Words known to `i18n` under `why` are translated: those of the compiler, and `volatile`, `moved`, `history`.
    """

    text: str
    role: PartRole
    kept: bool = True
    why: str = ""


@dataclass(frozen=True, slots=True)
class PromptView:
    """One question's prompt before (marked with what was cut) and, where there is one, after."""

    question: str
    before: tuple[Segment, ...]
    before_tokens: int
    after: tuple[Segment, ...] = ()
    after_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class PrefixPointer:
    """Where two successive prompts part.

    `token` is the index of the first token that differs, in the part of role `role`. `common` is the end of the
    shared text, `first` and `second` how the two prompts go on. `lost_tokens` follow the break although both
    prompts hold them: the server could have reused them.
    """

    token: int
    role: PartRole
    common: str
    first: str
    second: str
    lost_tokens: int


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of how it was measured. Labels known to `i18n` under `fact` are translated."""

    label: str
    value: str


@dataclass(frozen=True, slots=True)
class Page:
    """Everything on the page. `plane[i][j]` is the heat (0..100) at redundancy i / (n - 1), memory j / (n - 1)."""

    source: str
    diagnosis: Diagnosis
    before: RunView
    after: RunView | None = None
    comparison: Comparison | None = None
    plane: Sequence[Sequence[float]] = ()
    prompt: PromptView | None = None
    prices: tuple[PriceTag, ...] = ()
    pointer: PrefixPointer | None = None
    facts: tuple[Fact, ...] = field(default_factory=tuple)
