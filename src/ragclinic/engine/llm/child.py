"""The process that holds the llama.cpp server: `python -m ragclinic.engine.llm.child` with a JSON line on stdin.

It prints one JSON line with its address and then waits for its standard input to close: when its parent ends,
however it ends, the pipe breaks and the server goes with it.
"""

import json
import os
import sys
from typing import Any


def serve(config: dict[str, Any]) -> None:
    """Runs the server until standard input closes; never returns."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = config["model_path"]
    params.n_ctx = config["window_tokens"] * config["slots"]  # llama.cpp divides it by the slots
    params.n_parallel = config["slots"]
    params.n_batch = params.n_ubatch = config["batch_tokens"]
    params.port = 0
    params.endpoint_metrics = True
    params.endpoint_slots = True
    params.verbosity = 4  # prints the sizes of the buffers, from which the KV bytes of a token follow
    if config["threads"]:
        params.cpuparams.n_threads = config["threads"]
        params.cpuparams_batch.n_threads = config["threads"]
    server = xllamacpp.Server(params)
    sys.stdout.write(json.dumps({"address": server.listening_address}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)  # the server's own destructor waits for open connections


if __name__ == "__main__":
    serve(json.loads(sys.stdin.readline()))
