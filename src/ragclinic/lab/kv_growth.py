"""How the KV cache grows: with batch, length and heads, and what a smaller type and a window save.

Refuted by: any of the sums not proportional, or FP8 not exactly half. Held: 16-bit weights, one length for all
sequences. Cost: under a second, no hardware. Limit: it counts what must be kept, not what an engine wastes beside.
"""

from ragclinic.lab.experiment import Claim, Experiment, Outcome, Plot, Row
from ragclinic.physics.hardware import named_device
from ragclinic.physics.memory import layer_kv_bytes, sequence_bytes, token_bytes
from ragclinic.physics.models import named_model
from ragclinic.physics.precision import kv_type, weight_type
from ragclinic.physics.roofline import decode_ms, step_cost

MODELS = ("llama-2-7b", "llama-3-8b", "mistral-7b-v0.1", "gemma-3-12b", "deepseek-v2-lite", "qwen3-next-80b-a3b")
LENGTHS = (512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536)
BATCHES = (1, 2, 4, 8, 16, 32)
HEADS = (1, 8, 32)
GIB = 2**30
READ_TOKENS = 2048


def run(_: int) -> Outcome:
    """The formula over its three factors, and the claims made with it."""
    return Outcome((*_formula_rows(), *_model_rows()), _claims(), (_plot(),))


def _formula_rows() -> tuple[Row, ...]:
    return tuple(
        {
            "kv_type": name,
            "batch": batch,
            "tokens": tokens,
            "kv_heads": heads,
            "layer_bytes": layer_kv_bytes(batch, tokens, heads, 128, kv_type(name)),
        }
        for name in ("f16", "fp8", "q8_0", "q4_0")
        for batch in BATCHES
        for tokens in LENGTHS
        for heads in HEADS
    )


def _model_rows() -> tuple[Row, ...]:
    return tuple(
        {"model": name, "tokens": n, "sequence_bytes": sequence_bytes(named_model(name), n, kv_type("f16"))}
        for name in MODELS
        for n in LENGTHS
    )


def _claims() -> tuple[Claim, ...]:
    f16, fp8 = kv_type("f16"), kv_type("fp8")
    whole = layer_kv_bytes(8, 4096, 32, 128, f16)
    return (
        Claim(
            "one layer: batch 8, 4,096 tokens, 32 heads of 128, FP16", "bytes", 536_870_912, whole, "the formula"
        ),
        Claim("FP8 against FP16", "ratio", 0.5, layer_kv_bytes(8, 4096, 32, 128, fp8) / whole, "half the bytes"),
        Claim(
            "KV reads of one sequence at 2,048 tokens on 2 TB/s",
            "GB/s",
            180.0,
            _read_gb_s("llama-2-7b", 1),
            "Llama-2-7B on an A100: the cache is read once a step, and a step reads 13 GB of weights too; "
            "a shorter step (smaller or quantised weights) is needed to reach the claim",
        ),
        Claim(
            "the same with AWQ weights",
            "GB/s",
            180.0,
            _read_gb_s("llama-2-7b", 1, "awq"),
            "4-bit weights make the step shorter, so the same cache is read more often a second",
        ),
    )


def _read_gb_s(model_name: str, batch: int, weights: str = "f16") -> float:
    model, kv = named_model(model_name), kv_type("f16")
    cost = step_cost(model, named_device("a100-80g"), kv, weight_type(weights))
    return batch * READ_TOKENS * token_bytes(model, kv) / decode_ms(cost, batch, READ_TOKENS) / 1e6


def _plot() -> Plot:
    kv = kv_type("f16")
    return Plot(
        "kv-growth",
        "KV cache of one sequence, FP16",
        "tokens",
        "GiB",
        {m: tuple((float(n), sequence_bytes(named_model(m), n, kv) / GIB) for n in LENGTHS) for m in MODELS},
    )


EXPERIMENT = Experiment(
    id="kv-growth",
    question="How fast does the KV cache grow with batch, length and heads, and what does a smaller type save?",
    refuted_by="bytes that are not proportional to each factor, or FP8 that is not half of FP16",
    run=run,
)
