"""Requests as they arrive: Poisson, in bursts, or as published traces have them. Every generator is a stream."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from ragclinic.errors import BadInput

MOONCAKE_BLOCK_TOKENS = 512
Lengths = Callable[[random.Random], tuple[int, int]]
"""Draws the prompt and output tokens of one request."""


class Arrival(NamedTuple):
    """One request. `hashes` name its prompt's blocks of `hash_tokens` tokens each: equal hashes are equal prefixes
    (a hash covers all before it, as in vLLM and in the Mooncake trace). A lower `priority` goes first."""

    time_s: float
    prompt_tokens: int
    output_tokens: int
    hashes: tuple[int, ...] = ()
    hash_tokens: int = MOONCAKE_BLOCK_TOKENS
    tenant: str = ""
    priority: int = 0


def fixed_lengths(prompt_tokens: int, output_tokens: int) -> Lengths:
    """Every request alike."""
    return lambda _: (prompt_tokens, output_tokens)


def spread_lengths(prompt_tokens: int, output_tokens: int, spread: float = 0.5) -> Lengths:
    """Lengths spread log-normally around these medians; `spread` is the deviation of the logarithm."""

    def draw(chance: random.Random) -> tuple[int, int]:
        return (
            max(1, round(prompt_tokens * chance.lognormvariate(0, spread))),
            max(1, round(output_tokens * chance.lognormvariate(0, spread))),
        )

    return draw


def poisson(
    rate_per_s: float, count: int, lengths: Lengths, seed: int = 0, tenant: str = "", start_s: float = 0.0
) -> Iterator[Arrival]:
    """`count` requests with exponential gaps: independent users at a mean of `rate_per_s`."""
    chance = random.Random(seed)  # noqa: S311 (a simulation, not a secret)
    time_s = start_s
    for _ in range(count):
        time_s += chance.expovariate(rate_per_s)
        prompt, output = lengths(chance)
        yield Arrival(time_s, prompt, output, tenant=tenant)


def bursts(
    size: int, every_s: float, count: int, lengths: Lengths, seed: int = 0, tenant: str = ""
) -> Iterator[Arrival]:
    """`count` requests, `size` of them at the same moment every `every_s` seconds."""
    chance = random.Random(seed)  # noqa: S311
    for number in range(count):
        prompt, output = lengths(chance)
        yield Arrival(number // size * every_s, prompt, output, tenant=tenant)


def merged(streams: Sequence[Iterable[Arrival]]) -> Iterator[Arrival]:
    """Several streams as one, in order of time."""
    import heapq

    return heapq.merge(*streams, key=lambda a: a.time_s)


def repeated(trace: Sequence[Arrival], count: int) -> Iterator[Arrival]:
    """The trace over and over until `count` requests are made, each round beginning where the last ended."""
    if not trace:
        return
    period = trace[-1].time_s - trace[0].time_s + (trace[-1].time_s - trace[0].time_s) / max(1, len(trace) - 1)
    for number in range(count):
        arrival = trace[number % len(trace)]
        yield arrival._replace(time_s=arrival.time_s - trace[0].time_s + number // len(trace) * period)


def faster(arrivals: Iterable[Arrival], factor: float) -> Iterator[Arrival]:
    """The same requests at `factor` times the rate."""
    for arrival in arrivals:
        yield arrival._replace(time_s=arrival.time_s / factor)


def azure_arrivals(rows: Iterable[Mapping[str, str]], where: str) -> Iterator[Arrival]:
    """The Azure LLM inference trace 2023: rows of TIMESTAMP, ContextTokens, GeneratedTokens; time from the first.

    Raises:
        BadInput: a row lacks a column or holds no number; the message names the line.
    """
    start: datetime | None = None
    for line, row in enumerate(rows, start=2):
        try:
            moment = datetime.fromisoformat(row["TIMESTAMP"])
            prompt, output = int(row["ContextTokens"]), int(row["GeneratedTokens"])
        except (KeyError, ValueError, TypeError) as error:
            raise BadInput(
                f"{where}:{line}: {error!r}; expected TIMESTAMP,ContextTokens,GeneratedTokens; "
                "mend or drop the row"
            ) from error
        start = start or moment
        yield Arrival((moment - start).total_seconds(), max(1, prompt), max(1, output))


def mooncake_arrivals(rows: Iterable[Mapping[str, object]], where: str) -> Iterator[Arrival]:
    """The Mooncake trace: objects of timestamp (ms), input_length, output_length and hash_ids of 512 tokens each.

    Raises:
        BadInput: a row lacks a field or holds another type; the message names the line.
    """
    for line, row in enumerate(rows, start=1):
        time_ms, prompt, output = row.get("timestamp"), row.get("input_length"), row.get("output_length")
        hashes = row.get("hash_ids", [])
        if not (
            isinstance(time_ms, int | float)
            and isinstance(prompt, int)
            and isinstance(output, int)
            and isinstance(hashes, list)
            and all(isinstance(h, int) for h in hashes)
        ):
            raise BadInput(
                f"{where}:{line}: {sorted(row)}; expected numbers timestamp, input_length, output_length and a "
                "list hash_ids; mend or drop the row"
            )
        yield Arrival(time_ms / 1000, max(1, prompt), max(1, output), tuple(hashes), MOONCAKE_BLOCK_TOKENS)
