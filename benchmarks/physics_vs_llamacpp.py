"""The predicted bytes beside llama.cpp's own: "KV buffer size" and "model buffer size" as its server prints them.

    python -m benchmarks.physics_vs_llamacpp MODEL.gguf [MODEL.gguf ...] [--save FILE]

Starts one server for each model, context, number of slots, KV type and kind of cache (each in a process of its
own, one thread, no warm-up, nothing asked), reads its log at verbosity 4, and compares to the last printed digit.
Exits 1 where any differs. `--save` keeps the rows as JSON.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

from ragclinic.physics import from_gguf, kv_type
from ragclinic.physics.memory import llama_cpp_caches, llama_cpp_weights

CONTEXTS = (512, 2048, 5000)
SLOTS = (1, 3)
KV_TYPES = ("f16", "q8_0", "q4_0")
MIB = 2**20
TIMEOUT_S = 600
BUFFER = re.compile(r"(KV|model) buffer size =\s+([\d.]+) MiB")
CHILD = """
import os, sys, xllamacpp
path, context, slots, kv, unified = sys.argv[1:]
p = xllamacpp.CommonParams()
p.model.path, p.n_ctx, p.n_parallel, p.kv_unified = path, int(context), int(slots), unified == "1"
p.cache_type_k = p.cache_type_v = getattr(xllamacpp.ggml_type, "GGML_TYPE_" + kv.upper())
p.cpuparams.n_threads, p.port, p.verbosity, p.warmup, p.fit_params = 1, 0, 4, False, False
server = xllamacpp.Server(p)
sys.stdout.flush()
os._exit(0)
"""


class Row(NamedTuple):
    """One start: what was asked, what the server printed, and what was predicted, in MiB as printed."""

    model: str
    context_tokens: int
    slots: int
    kv_type: str
    unified: bool
    kv_printed_mib: str
    kv_predicted_mib: str
    model_printed_mib: str
    model_predicted_mib: str

    @property
    def equal(self) -> bool:
        """Whether both agree in every printed digit."""
        return (self.kv_printed_mib, self.model_printed_mib) == (self.kv_predicted_mib, self.model_predicted_mib)


def main() -> int:
    """Measures all settings and prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--save", type=Path)
    asked = parser.parse_args()
    rows = []
    print("| model | n_ctx | slots | KV | unified | KV printed | predicted | model printed | predicted | |")
    print("| --- | ---: | ---: | --- | --- | ---: | ---: | ---: | ---: | --- |")
    for row in measure(asked.models):
        rows.append(row)
        values = [str(v) if not isinstance(v, bool) else ("yes" if v else "no") for v in row]
        print("| " + " | ".join(values) + f" | {'equal' if row.equal else 'DIFFERENT'} |", flush=True)
    if asked.save:
        asked.save.write_text(json.dumps([r._asdict() for r in rows], indent=1) + "\n")
    print(f"\n{sum(r.equal for r in rows)} of {len(rows)} equal in every printed digit")
    return 0 if all(r.equal for r in rows) else 1


def measure(models: list[Path]) -> Iterator[Row]:
    """One row for each setting; a unified cache only where there are several slots."""
    for path, context, slots, kv, unified in product(models, CONTEXTS, SLOTS, KV_TYPES, (False, True)):
        if unified and slots == 1:
            continue
        printed = printed_mib(path, context, slots, kv, unified)
        with path.open("rb") as stream:
            model = from_gguf(stream, path.stem)
        caches = llama_cpp_caches(model, context, slots, kv_type(kv), unified)
        weights = llama_cpp_weights(model, repack=len(printed["model"]) > 1)
        yield Row(
            path.stem,
            context,
            slots,
            kv,
            unified,
            " + ".join(sorted(printed["KV"])),
            " + ".join(sorted(f"{size / MIB:.2f}" for size in caches)),
            " + ".join(sorted(printed["model"])),
            " + ".join(sorted(f"{size / MIB:.2f}" for size in weights)),
        )


def printed_mib(path: Path, context: int, slots: int, kv: str, unified: bool) -> dict[str, list[str]]:
    """The buffers that the server's log names; a window makes two caches, repacking two buffers of weights."""
    command = [sys.executable, "-c", CHILD, str(path), str(context), str(slots), kv, str(int(unified))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    log = done.stdout + done.stderr
    found: dict[str, list[str]] = {"KV": [], "model": []}
    for kind, size in BUFFER.findall(log):
        found[kind].append(size)
    if not found["KV"]:
        raise SystemExit(f"{path}: no KV buffer in the server's log:\n{log[-2000:]}")
    return found


if __name__ == "__main__":
    sys.exit(main())
