"""The two phases of an answer on an otherwise idle engine: prefill of a prompt, decode of a batch."""

from ragclinic.physics.roofline.step import Step, StepCost


def pairs(offset_tokens: float, tokens: float, window_tokens: int | None = None) -> float:
    """The sum over `tokens` new tokens behind `offset_tokens` of how many tokens each sees, itself included.

    Causal attention: n (n + 1) / 2 for a whole prompt, which is what makes prefill quadratic; a window bounds
    what each can see.
    """
    if window_tokens is None:
        return tokens * offset_tokens + tokens * (tokens + 1) / 2
    growing = min(tokens, max(0.0, window_tokens - offset_tokens))
    return pairs(offset_tokens, growing) + (tokens - growing) * window_tokens


def prefill_step(cost: StepCost, offset_tokens: int, tokens: int, last: bool = True) -> Step:
    """The step that computes `tokens` of one prompt behind `offset_tokens` that are computed or cached.

    Only the `last` chunk of a prompt makes a row of logits.
    """
    window = cost.window_tokens
    end = offset_tokens + tokens
    return Step(
        tokens=tokens,
        rows=int(last),
        prefill_pairs=pairs(offset_tokens, tokens),
        prefill_pairs_window=pairs(offset_tokens, tokens, window) if window else 0.0,
        prefill_context=end,
        prefill_context_window=min(end, window + tokens) if window else 0.0,
    )


def prefill_ms(
    cost: StepCost, prompt_tokens: int, cached_tokens: int = 0, chunk_tokens: int | None = None
) -> float:
    """Milliseconds to the first token of one prompt on an idle engine, in chunks of `chunk_tokens`."""
    total, at = 0.0, cached_tokens
    while at < prompt_tokens:
        tokens = min(prompt_tokens - at, chunk_tokens or prompt_tokens)
        total += cost.step_ms(prefill_step(cost, at, tokens, last=at + tokens == prompt_tokens))
        at += tokens
    return total


def decode_ms(cost: StepCost, batch: int, context_tokens: float) -> float:
    """Milliseconds of one decode step of `batch` sequences of this mean length: the time per output token."""
    window = cost.window_tokens
    return cost.step_ms(
        Step(
            tokens=batch,
            rows=batch,
            decodes=batch,
            decode_context=batch * context_tokens,
            decode_context_window=batch * min(context_tokens, window) if window else 0.0,
        )
    )


def crossover_batch(base: StepCost, other: StepCost, context_tokens: float = 0.0, most: int = 4096) -> int | None:
    """The smallest batch from which `other` decodes no faster than `base`, or None up to `most`.

    The knee of weight-only quantisation: `base` in 16 bits, `other` in 4.
    """
    for batch in range(1, most + 1):
        if decode_ms(other, batch, context_tokens) >= decode_ms(base, batch, context_tokens):
            return batch
    return None
