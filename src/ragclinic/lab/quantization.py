"""4-bit weights: size, first token, throughput, and the batch past which they are slower than 16 bits.

Refuted by: no knee, or a first token that is not later. Held: Llama-3-8B on an A100, prompts of 1,024 tokens, a
16-bit cache. Varied: batch, kernel (Marlin, AutoAWQ's GEMM). Cost: seconds, no hardware. Limit: the kernels' two
constants are fitted to public batch sweeps, so a third kernel may differ.
"""

from ragclinic.lab.experiment import Claim, Experiment, Outcome, Plot, Row
from ragclinic.physics.hardware import named_device
from ragclinic.physics.memory import weights_bytes
from ragclinic.physics.models import named_model
from ragclinic.physics.precision import kv_type, weight_type
from ragclinic.physics.roofline import AWQ_GEMM, MARLIN, Kernel, StepCost, crossover_batch, decode_ms, prefill_ms
from ragclinic.physics.roofline import step_cost as step

MODEL, DEVICE = "llama-3-8b", "a100-80g"
BATCHES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
PROMPT_TOKENS, CONTEXT_TOKENS = 1024, 1024


def run(_: int) -> Outcome:
    """Sizes of every way to store it, and both kernels over the batch."""
    base = _cost("f16", MARLIN)
    packed = {kernel.name: _cost("awq", kernel) for kernel in (MARLIN, AWQ_GEMM)}
    costs = {"fp16": base, **packed}
    rows: list[Row] = [
        {"weights": name, "weights_bytes": weights_bytes(named_model(MODEL), weight_type(name))}
        for name in ("f16", "fp8", "int8", "awq", "gptq", "gptq-4-g32", "nf4", "q4_k_m", "q4_0")
    ]
    rows += [
        {
            "engine": name,
            "batch": batch,
            "ttft_ms": prefill_ms(cost, PROMPT_TOKENS),
            "tpot_ms": decode_ms(cost, batch, CONTEXT_TOKENS),
            "tokens_per_s": _tokens_per_s(cost, batch),
        }
        for name, cost in costs.items()
        for batch in BATCHES
    ]
    return Outcome(tuple(rows), _claims(base, packed), (_plot(base, packed),))


def _cost(weights: str, kernel: Kernel) -> StepCost:
    return step(named_model(MODEL), named_device(DEVICE), kv_type("f16"), weight_type(weights), kernel=kernel)


def _tokens_per_s(cost: StepCost, batch: int) -> float:
    return batch / decode_ms(cost, batch, CONTEXT_TOKENS) * 1000


def _claims(base: StepCost, packed: dict[str, StepCost]) -> tuple[Claim, ...]:
    model = named_model(MODEL)

    def gigabytes(name: str) -> float:
        return weights_bytes(model, weight_type(name)) / 1e9

    marlin, gemm = packed["marlin"], packed["awq-gemm"]
    later = {
        n: (prefill_ms(c, PROMPT_TOKENS) / prefill_ms(base, PROMPT_TOKENS) - 1) * 100 for n, c in packed.items()
    }
    tables = "the two token tables (2.1 GB) stay in 16 bits; 4.3 GB would need them in 4 bits as well"
    return (
        Claim("size in FP16", "GB", 16.2, gigabytes("f16"), "8.03 billion parameters of 2 bytes"),
        Claim("size in AWQ, groups of 128", "GB", 5.8, gigabytes("awq"), "4.16 bits in the layers"),
        Claim("size in GPTQ", "GB", 4.3, gigabytes("gptq"), tables),
        Claim("the same, if llama.cpp's Q4_0 is meant", "GB", 4.3, gigabytes("q4_0"), "4.5 bits, tables too"),
        Claim("first token with Marlin", "%", 18.0, later["marlin"], "unpacking again for every 64 rows"),
        Claim("first token with AWQ GEMM", "%", 18.0, later["awq-gemm"], "unpacking again for every 16 rows"),
        Claim(
            "throughput at batch 1, Marlin",
            "x",
            2.7,
            _tokens_per_s(marlin, 1) / _tokens_per_s(base, 1),
            "weights read: 4.16 of 16 bits, the head not packed, and the host's own work unchanged",
        ),
        Claim(
            "knee with AWQ GEMM",
            "batch",
            32.0,
            _knee(base, gemm),
            "without context; reading a cache moves it little",
        ),
        Claim(
            "knee with Marlin", "batch", 32.0, _knee(base, marlin), "the knee belongs to the kernel, not to INT4"
        ),
    )


def _knee(base: StepCost, other: StepCost) -> float | None:
    batch = crossover_batch(base, other, 0.0, most=1024)
    return None if batch is None else float(batch)


def _plot(base: StepCost, packed: dict[str, StepCost]) -> Plot:
    return Plot(
        "quantization",
        f"{MODEL} on {DEVICE}: throughput of 4-bit weights against FP16",
        "batch",
        "times FP16",
        {
            name: tuple((float(b), _tokens_per_s(cost, b) / _tokens_per_s(base, b)) for b in BATCHES)
            for name, cost in packed.items()
        },
    )


EXPERIMENT = Experiment(
    id="quantization",
    question="What do 4-bit weights save, what do they cost the first token, and past which batch do they lose?",
    refuted_by="a first token that is not later, or no batch past which 16 bits are faster",
    run=run,
)
