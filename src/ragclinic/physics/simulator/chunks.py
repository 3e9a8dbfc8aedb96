"""The step that a set of prompt chunks and a decoding batch make together."""

from collections.abc import Iterable

from ragclinic.physics.roofline import Step, pairs
from ragclinic.physics.simulator.decoding import DecodeBatch
from ragclinic.physics.simulator.sequence import Sequence

Chunk = tuple[Sequence, int]
"""A request and how many tokens of its prompt this step computes."""


def chunks_step(chunks: Iterable[Chunk], batch: DecodeBatch | None, window_tokens: int | None) -> Step:
    """The step for these chunks and, where it takes part, one token of every sequence of the batch."""
    new = rows = 0
    seen = seen_window = read = read_window = 0.0
    for sequence, tokens in chunks:
        offset = sequence.computed_tokens
        end = offset + tokens
        new += tokens
        rows += end == sequence.target_tokens
        seen += pairs(offset, tokens)
        read += end
        if window_tokens is not None:
            seen_window += pairs(offset, tokens, window_tokens)
            read_window += min(end, window_tokens + tokens)
    decodes = len(batch) if batch is not None else 0
    context = batch.context if batch is not None else 0
    window_context = batch.window_context if batch is not None else 0
    return Step(
        new + decodes, rows + decodes, seen, seen_window, read, read_window, decodes, context, window_context
    )  # fmt: skip
