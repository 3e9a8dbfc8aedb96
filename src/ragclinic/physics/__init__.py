"""What must be: memory, bandwidth and latency from model and hardware; pure functions.

    models      layers, widths and parameters, from a config.json, a GGUF header or the table
    hardware    memory, bandwidth and arithmetic of devices, from the table
    precision   number types of weights and cache, to the bit
    memory      weights, KV cache and working memory in bytes; how many sequences fit
    roofline    prefill, decode, transfers, unpacking, launching in milliseconds
    allocator   PyTorch's caching allocator, pools, pages; loads; replay of a snapshot
    simulator   a serving engine under a load, request by request
    plan        all of it for one setting

Importing it loads the formulas alone; allocators, simulator and plans are imported by their own names.
"""

from ragclinic.physics.hardware import Device, known_devices, named_device
from ragclinic.physics.models import Model, from_config, from_gguf, known_models, named_model
from ragclinic.physics.precision import kv_type, weight_type
from ragclinic.physics.roofline import StepCost, decode_ms, prefill_ms, step_cost

__all__ = [
    "Device",
    "Model",
    "StepCost",
    "decode_ms",
    "from_config",
    "from_gguf",
    "known_devices",
    "known_models",
    "kv_type",
    "named_device",
    "named_model",
    "prefill_ms",
    "step_cost",
    "weight_type",
]
