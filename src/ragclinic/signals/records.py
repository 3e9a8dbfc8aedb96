"""The record types: what a reader yields and what a recording holds, one dataclass a table.

Times are integers in nanoseconds since the Unix epoch (`_ns`), as OpenTelemetry has them; everything derived
from them is in milliseconds. `None` means unknown, never zero.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Content = Literal["text", "hashed", "off"]
"""How much of prompts and chunks a recording keeps: the text, salted hashes of its tokens, or counts only."""

PartRole = Literal["system", "volatile", "history", "context", "question", "template"]
"""What a part of a prompt is: `volatile` changes with every request (a clock, an id), `template` is the rest."""

AttributeValue = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Span:
    """One OpenTelemetry span. `attributes` keep their public names (GenAI, OpenInference)."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start_ns: int
    end_ns: int
    service: str = ""
    error: str | None = None
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of one metric at one moment, under its public name; `labels` as `{"slot": "0"}`."""

    time_ns: int
    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One retrieved chunk of one request, in rank order (0 is the best).

    `start` and `end` are character offsets into the document. With content `text` the text is there; with
    `hashed` `keys` are the salted hashes of its shingles, which still tell overlap; with `off` neither is.
    `span_id` is the span that returned it, where a trace may hold several searches and a reranker.
    """

    trace_id: str
    rank: int
    chunk_id: str
    doc: str | None = None
    start: int | None = None
    end: int | None = None
    score: float | None = None
    tokens: int | None = None
    text: str | None = None
    keys: tuple[int, ...] | None = None
    span_id: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """One part of one prompt, in the order in which the model read it.

    `token_keys` are the model's token ids (content `text`) or salted hashes of them (`hashed`): two prompts are
    compared by them alike. `rank` names the chunk where the role is `context`, `span_id` the call whose prompt it
    is, where a trace may hold several.
    """

    trace_id: str
    position: int
    role: PartRole
    tokens: int
    text: str | None = None
    token_keys: tuple[int, ...] | None = None
    rank: int | None = None
    span_id: str | None = None


Record = Span | Sample | Chunk | Part
