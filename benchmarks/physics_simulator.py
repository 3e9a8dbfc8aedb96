"""How fast the simulator is, and that its memory stays flat: the Azure trace over and over, on one core.

    python -m benchmarks.physics_simulator [TRACE] [--requests N]

Without a trace (`../shared/data/azure/conv.csv` where it is) a seeded load of the same mean lengths is used.
Prints one line a server and writes the rows to `benchmarks/results/physics_simulator.json`. llama.cpp's four
slots cannot keep up with this trace, so its requests wait inside and memory grows with the queue.
"""

import argparse
import csv
import json
import platform
import resource
import time
from collections.abc import Iterable
from pathlib import Path

from ragclinic.physics import kv_type, named_device, named_model, step_cost, weight_type
from ragclinic.physics.memory import token_bytes
from ragclinic.physics.simulator import (
    LLAMA_CPP,
    SGLANG,
    TGI,
    VLLM,
    Arrival,
    Done,
    Server,
    azure_arrivals,
    poisson,
    repeated,
    simulate,
    spread_lengths,
)

TRACE = Path("../shared/data/azure/conv.csv")
RESULTS = Path("benchmarks/results/physics_simulator.json")
CACHE_BYTES = 50e9
REPEATS = 3
MIB = 2**20


def main() -> None:
    """Times every server's profile, interleaved, and the growth of memory from a tenth of the requests to all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("trace", nargs="?", type=Path, default=TRACE)
    parser.add_argument("--requests", type=int, default=100_000)
    asked = parser.parse_args()
    model, kv = named_model("llama-3-8b"), kv_type("f16")
    cost = step_cost(model, named_device("a100-80g"), kv, weight_type("f16"))
    trace = read_trace(asked.trace)
    rows = []
    for repeat in range(REPEATS):
        for profile in (VLLM, SGLANG, TGI, LLAMA_CPP):
            server = Server(profile, cost, int(CACHE_BYTES / token_bytes(model, kv) / profile.block_tokens))
            run(server, trace, asked.requests // 10)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            took_s = run(server, trace, asked.requests)
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            rows.append(
                {
                    "server": profile.name,
                    "repeat": repeat,
                    "requests": asked.requests,
                    "cpu_s": took_s,
                    "requests_per_minute": asked.requests / took_s * 60,
                    "peak_mib": after,
                    "growth_mib": after - before,
                }
            )
            print(
                f"{profile.name:10} {asked.requests / took_s * 60:>10,.0f} requests a minute, "
                f"{after:,.0f} MiB at most, {after - before:+.1f} MiB from a tenth to all"
            )
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(
        json.dumps({"python": platform.python_version(), "machine": platform.machine(), "rows": rows}, indent=1)
    )


def read_trace(path: Path) -> list[Arrival]:
    """The trace, or a seeded load like it where the file is not there."""
    if path.is_file():
        with path.open(newline="") as file:
            return list(azure_arrivals(csv.DictReader(file), str(path)))
    return list(poisson(5.5, 19_366, spread_lengths(800, 130, 0.9), seed=0))


def run(server: Server, trace: list[Arrival], requests: int) -> float:
    """CPU seconds for so many requests; their ends are counted and let go."""
    arrivals: Iterable[Arrival] = repeated(trace, requests)
    start = time.process_time()
    done = sum(isinstance(event, Done) for event in simulate(server, arrivals, sample_s=5.0))
    assert done == requests
    return time.process_time() - start


if __name__ == "__main__":
    main()
