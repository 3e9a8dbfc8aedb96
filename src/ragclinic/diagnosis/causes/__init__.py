"""The causes that can be found, one file each. To add one: its file, and its line here. See docs/adding/cause.md.

Of findings with equal shares the earlier one comes first: what is cheap to do and changes no answer stands above.
`healthy` is a verdict and no finding; see `healthy.py`.
"""

from typing import Any

from ragclinic.diagnosis.causes import (
    answer_recomputed,
    context_overfull,
    context_redundant,
    decode_bound,
    not_streaming,
    overlap_waste,
    prefill_bound,
    prefix_unstable,
    queue_saturated,
    tail_chunks_idle,
    weights_reloaded,
)
from ragclinic.diagnosis.types import Cause

CAUSES: tuple[Cause[Any], ...] = (
    weights_reloaded.CAUSE,
    prefix_unstable.CAUSE,
    overlap_waste.CAUSE,
    context_redundant.CAUSE,
    tail_chunks_idle.CAUSE,
    context_overfull.CAUSE,
    answer_recomputed.CAUSE,
    not_streaming.CAUSE,
    queue_saturated.CAUSE,
    prefill_bound.CAUSE,
    decode_bound.CAUSE,
)
