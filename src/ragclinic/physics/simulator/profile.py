"""How the known servers schedule, as the few choices that tell them apart."""

from dataclasses import dataclass
from typing import Literal

from ragclinic.errors import BadInput
from ragclinic.physics.nearest import nearest


@dataclass(frozen=True, slots=True)
class Profile:
    """One server's scheduling.

    `step_tokens` is the most a step computes, `sequences` the most that run at once. `mixed`: prefill chunks share
    a step with decodes (otherwise decodes wait for prefill). `chunked`: a prompt may be cut. `reserve` is what
    admission takes: blocks for the first `chunk`, for the whole `prompt`, or for prompt and output (`whole`).
    `full` is what happens when a running sequence finds no block: it or a later one is `recompute`d, `swap`ped to
    the host, or ends with an error (`fail`). `prefix` is where computed prompts are found again: in `blocks` by
    hash, in the `slot` that held the last one, or nowhere.
    """

    name: str
    block_tokens: int
    sequences: int
    step_tokens: int
    mixed: bool
    chunked: bool
    reserve: Literal["chunk", "prompt", "whole"]
    full: Literal["recompute", "swap", "fail"]
    prefix: Literal["blocks", "slot", "off"]
    slot_tokens: int | None = None
    """The longest sequence a slot holds (llama.cpp without a unified cache); None: the whole cache."""


VLLM = Profile("vllm", 16, 256, 2048, True, True, "chunk", "recompute", "blocks")
"""vLLM V1: decodes first, then prompts in chunks within `max_num_batched_tokens`; admission looks at the first
chunk only (vllm-project/vllm#37307); the last admitted is preempted and recomputed."""
SGLANG = Profile("sglang", 1, 256, 8192, False, True, "prompt", "recompute", "blocks")
"""SGLang: prefill batches go before decode batches, chunks of `chunked_prefill_size`, pages of one token,
retraction by recomputation."""
TGI = Profile("tgi", 16, 128, 4096, False, False, "whole", "recompute", "off")
"""TGI 2: a prefill batch pauses decode, and admission reserves prompt and output, so none is preempted."""
LLAMA_CPP = Profile("llama.cpp", 1, 4, 2048, True, True, "whole", "fail", "slot")
"""llama.cpp's server: `n_parallel` slots of n_ctx / n_parallel, one batch of `n_batch` tokens for all of them; the
longest common prefix with what a slot held before is kept."""
PROFILES = {p.name: p for p in (VLLM, SGLANG, TGI, LLAMA_CPP)}


def named_profile(name: str) -> Profile:
    """The profile of this server.

    Raises:
        BadInput: no such server; the message lists the nearest.
    """
    found = PROFILES.get(name.lower())
    if found is None:
        raise BadInput(
            f"server {name}: not known; the nearest is {nearest(name, PROFILES, 1)[0]}; "
            f"expected one of {', '.join(PROFILES)}"
        )
    return found
