"""`ragclinic plan`: will it fit, how fast, what breaks first, and what keeps the objective most cheaply."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def plan(
    model: Annotated[str, typer.Option(help="A known model, a config.json or a GGUF file.")],
    device: Annotated[str, typer.Option(help="An accelerator or a CPU, as h100-80g.")],
    context: Annotated[int, typer.Option(help="Tokens of prompt and answer.", min=2)] = 8192,
    users: Annotated[int, typer.Option(help="Users; each asks once every --every-s.", min=1)] = 1,
    slo_ms: Annotated[float, typer.Option(help="The objective: P95 of the time to first token.", min=1)] = 2000.0,
    output: Annotated[int, typer.Option(help="Tokens of the answer.", min=1)] = 256,
    every_s: Annotated[float, typer.Option(help="Seconds between two questions of a user.", min=0.001)] = 60.0,
    weights: Annotated[
        str | None, typer.Option(help="fp16, fp8, int8, awq, gptq, q4_k_m ... [default: as stored, else fp16]")
    ] = None,
    kv_type: Annotated[str, typer.Option(help="Type of the KV cache: f16, fp8, int8, q8_0, q4_0 ...")] = "f16",
    server: Annotated[str, typer.Option(help="Scheduling of vllm, sglang, tgi or llama.cpp.")] = "vllm",
    sequences: Annotated[int | None, typer.Option(help="Most sequences at once.", min=1)] = None,
    step_tokens: Annotated[int | None, typer.Option(help="Most tokens in a step.", min=1)] = None,
    compression: Annotated[
        float, typer.Option(help="Share of the prompt that is kept, 0 to 1.", min=0.01, max=1)
    ] = 1.0,
    tp: Annotated[int, typer.Option(help="Devices that share each layer.", min=1)] = 1,
    pp: Annotated[int, typer.Option(help="Devices that take layers in turn.", min=1)] = 1,
    replicas: Annotated[int, typer.Option(help="Copies of the whole.", min=1)] = 1,
    router: Annotated[str, typer.Option(help="round-robin, least-loaded or prefix-aware.")] = "least-loaded",
    workload: Annotated[
        Path | None, typer.Option(help="A trace instead of even users: Azure CSV or Mooncake JSON lines.")
    ] = None,
    requests: Annotated[int | None, typer.Option(help="Only the first so many of the trace.", min=2)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Predict memory, speed and the load that breaks the objective, before anything is paid for.

    Example: `ragclinic plan --model llama-3-70b --device h100-80g --context 8192 --users 64 --slo-ms 2000`
    """
    from dataclasses import replace

    from ragclinic.cli.plan_inputs import open_model, open_trace
    from ragclinic.physics.hardware import named_device
    from ragclinic.physics.plan import Setting, make_plan
    from ragclinic.physics.precision import kv_type as named_kv_type
    from ragclinic.physics.precision import weight_type
    from ragclinic.physics.simulator import named_profile, named_router

    found = open_model(model)
    profile = named_profile(server)
    named_router(router)
    setting = Setting(
        model=found,
        device=named_device(device),
        context_tokens=context,
        users=users,
        slo_ms=slo_ms,
        kv=named_kv_type(kv_type),
        weights=weight_type(weights or found.stored_type or "fp16"),
        output_tokens=min(output, context - 1),
        every_s=every_s,
        profile=replace(
            profile,
            sequences=sequences or profile.sequences,
            step_tokens=step_tokens or profile.step_tokens,
        ),
        tensor=tp,
        pipeline=pp,
        replicas=replicas,
        compression=compression,
        stored=weights is None and found.stored_bytes is not None,
    )
    made = make_plan(setting, open_trace(workload, requests) if workload else None, router)
    if json:
        from json import dumps

        from ragclinic.cli.plan_view import plan_json

        sys.stdout.write(dumps(plan_json(made), indent=1, ensure_ascii=False) + "\n")
        return
    from rich.console import Console

    from ragclinic.cli.plan_view import print_plan

    print_plan(Console(), made)
