"""Memory: the bytes of weights, KV cache and working memory, and how many sequences fit."""

from ragclinic.physics.memory.fit import USABLE_SHARE, Budget, Demand, budget
from ragclinic.physics.memory.kv import (
    layer_kv_bytes,
    layer_token_bytes,
    llama_cpp_caches,
    round_up,
    sequence_bytes,
    state_bytes,
    token_bytes,
)
from ragclinic.physics.memory.shard import shard
from ragclinic.physics.memory.weights import llama_cpp_weights, weights_bytes
from ragclinic.physics.memory.working import activation_bytes, graph_bytes

__all__ = [
    "USABLE_SHARE",
    "Budget",
    "Demand",
    "activation_bytes",
    "budget",
    "graph_bytes",
    "layer_kv_bytes",
    "layer_token_bytes",
    "llama_cpp_caches",
    "llama_cpp_weights",
    "round_up",
    "sequence_bytes",
    "shard",
    "state_bytes",
    "token_bytes",
    "weights_bytes",
]
