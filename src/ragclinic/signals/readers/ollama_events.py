"""The structured lines of Ollama's log (`time=... level=... msg="..." key=value`) as samples.

Layers: the older engine prints one line `offload` with everything, the newer `offloaded 42/43 layers to GPU`
and, where it did not fit, `offloading output layer to CPU`: all but one layer on the GPU is still a fallback.
"""

import re
from collections.abc import Mapping

from ragclinic.signals.readers.durations import duration_ns
from ragclinic.signals.readers.finite import count, finite
from ragclinic.signals.readers.log_common import Found
from ragclinic.signals.readers.torch_names import BYTES

FIELD = re.compile(r"(?P<key>[\w.]+)=(?P<value>\"(?:[^\"\\]|\\.)*\"|\S*)")
OFFLOADED = re.compile(r"offloaded (?P<layers>\d+)/(?P<total>\d+) layers to GPU")
SIZE = re.compile(r"(?P<size>[\d.]+) (?P<unit>[KMGT]?i?B)")
SETTING = re.compile(r"\b(?P<name>OLLAMA_[A-Z_]+):(?P<value>[^\s\]]*)")

# Fields of the message `offload` and of others, message -> field -> name.
NUMBERS: Mapping[str, Mapping[str, str]] = {
    "offload": {
        "layers.model": "ollama.log.layers_total",
        "layers.offload": "ollama.log.layers_offloaded",
        "memory.required.full": "ollama.log.memory_required_bytes",
        "memory.required.partial": "ollama.log.memory_placed_bytes",
        "memory.required.kv": "ollama.log.kv_bytes",
        "memory.weights.total": "ollama.log.model_bytes",
    },
    "truncating input prompt": {
        "limit": "ollama.log.truncated.limit_tokens",
        "prompt": "ollama.log.truncated.prompt_tokens",
        "keep": "ollama.log.truncated.kept_tokens",
        "new": "ollama.log.truncated.new_tokens",
    },
    "truncating input messages which exceed context length": {"truncated": "ollama.log.truncated.messages"},
    "loaded runners": {"count": "ollama.log.loaded_runners"},
    "gpu VRAM usage didn't recover within timeout": {"seconds": "ollama.log.vram_not_recovered_s"},
    "requested context size too large for model": {
        "num_ctx": "ollama.log.window_tokens",
        "n_ctx_train": "ollama.log.trained_window_tokens",
    },
    "vram-based default context": {
        "total_vram": "ollama.log.vram_bytes",
        "default_num_ctx": "ollama.log.default_window_tokens",
    },
    "model weights": {"size": "ollama.log.model_bytes"},
    "kv cache": {"size": "ollama.log.kv_bytes"},
    "compute graph": {"size": "ollama.log.graph_bytes"},
    "total memory": {"size": "ollama.log.memory_required_bytes"},
    "inference compute": {"total": "hw.gpu.memory.limit", "available": "hw.gpu.memory.free"},
}
ONCE: Mapping[str, str] = {
    "offloading output layer to CPU": "ollama.log.output_layer_on_cpu",
    "llama-server model predicted to exceed available memory, evicting": "ollama.log.evictions",
    "evicting all other loaded models for OOM retry": "ollama.log.evictions",
    "runtime OOM detected; expiring loaded models to clear memory before next request": "ollama.log.ooms",
    "predicted usage exceeds VRAM": "ollama.log.usage_exceeds_vram",
}
SETTINGS: Mapping[str, str] = {
    "OLLAMA_NUM_PARALLEL": "ollama.log.num_parallel",
    "OLLAMA_CONTEXT_LENGTH": "ollama.log.context_length",
    "OLLAMA_MAX_LOADED_MODELS": "ollama.log.max_loaded_models",
    "OLLAMA_KEEP_ALIVE": "ollama.log.keep_alive_s",
}


def slog_fields(line: str) -> dict[str, str]:
    """The fields of a line of Go's `slog`, without quotes."""
    return {
        found["key"]: found["value"][1:-1].replace('\\"', '"') if found["value"][:1] == '"' else found["value"]
        for found in FIELD.finditer(line)
    }


def event_samples(message: str, fields: Mapping[str, str]) -> Found:
    """The samples of one structured line; empty where it holds nothing for us.

    Raises:
        ValueError: a known field whose value is no number or size.
    """
    if message == "server config":
        return _settings(fields.get("env", ""))
    found: Found = []
    if message in ONCE:
        found.append((ONCE[message], 1.0, {}))
    layers = OFFLOADED.search(message)
    if layers is not None:
        found.append(("ollama.log.layers_offloaded", float(count(layers["layers"])), {}))
        found.append(("ollama.log.layers_total", float(count(layers["total"])), {}))
    labels = _labels(message, fields)
    for field, name in NUMBERS.get(message, {}).items():
        if fields.get(field):
            found.append((name, _value(fields[field]), labels))
    return found


def _labels(message: str, fields: Mapping[str, str]) -> dict[str, str]:
    if message == "inference compute":
        return {"hw.id": fields.get("id", ""), "library": fields.get("library", "")}
    return {"device": fields["device"]} if "device" in fields else {}


def _settings(text: str) -> Found:
    found: Found = []
    for setting in SETTING.finditer(text):
        name, value = SETTINGS.get(setting["name"]), setting["value"]
        if name is None or not value:
            continue
        if setting["name"] == "OLLAMA_KEEP_ALIVE":
            # Negative means for ever, and Go then prints the largest duration it has.
            if not value.startswith("-") and not value.startswith("2562047h"):
                found.append((name, duration_ns(value) / 1e9, {}))
        elif value.isdigit():
            found.append((name, float(count(value)), {}))
    return found


def _value(text: str) -> float:
    size = SIZE.fullmatch(text.strip())
    if size is not None:
        return finite(size["size"], BYTES[size["unit"]])
    return finite(text)


__all__ = ["event_samples", "slog_fields"]
