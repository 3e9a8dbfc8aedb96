"""What a page of metrics could tell and does not, by the programs on it, with the line that adds it."""

from typing import NamedTuple

from ragclinic.signals.readers.reader import ReadLog

MAX_NAMES = 20_000
"""A page has some hundreds of names; beyond this no more are remembered."""
COUNTERS_FILE = "to the counters file of dcgm-exporter (-f)"


class Want(NamedTuple):
    """A signal that a program can give: names of its metrics by their beginning, any of which is enough."""

    program: str
    names: tuple[str, ...]
    signal: str
    how: str


WANTS = (
    Want(
        "DCGM_FI_",
        ("DCGM_FI_PROF_PCIE_RX_BYTES", "DCGM_FI_DEV_PCIE_RX_THROUGHPUT"),
        "pcie throughput",
        f"add DCGM_FI_PROF_PCIE_RX_BYTES and DCGM_FI_PROF_PCIE_TX_BYTES {COUNTERS_FILE}",
    ),
    Want(
        "DCGM_FI_",
        ("DCGM_FI_DEV_PCIE_LINK_GEN",),
        "pcie link",
        f"add DCGM_FI_DEV_PCIE_LINK_GEN and DCGM_FI_DEV_PCIE_LINK_WIDTH {COUNTERS_FILE}",
    ),
    Want(
        "DCGM_FI_",
        ("DCGM_FI_PROF_DRAM_ACTIVE",),
        "memory bandwidth",
        f"add DCGM_FI_PROF_DRAM_ACTIVE {COUNTERS_FILE}",
    ),
    Want(
        "DCGM_FI_",
        ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DCGM_EXP_CLOCK_EVENTS"),
        "throttle reasons",
        f"add DCGM_FI_DEV_CLOCKS_EVENT_REASONS {COUNTERS_FILE}",
    ),
    Want(
        "vllm:",
        ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        "kv usage",
        "scrape /metrics of the engine itself, not of a router before it",
    ),
    Want(
        "vllm:",
        ("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache"),
        "prefix hits",
        "start vLLM with --enable-prefix-caching",
    ),
    Want(
        "sglang:",
        ("sglang:token_usage", "sglang:full_token_usage"),
        "kv usage",
        "start SGLang with --enable-metrics",
    ),
    Want(
        "sglang:",
        ("sglang:time_to_first_token_seconds",),
        "first token",
        "start SGLang with --enable-metrics, and scrape after the first request",
    ),
    Want(
        "llamacpp:",
        ("llamacpp:kv_cache_usage_ratio",),
        "kv usage",
        "poll /slots as well: current builds of llama.cpp export no KV usage",
    ),
    Want("llamacpp:", (), "latency histograms", "give the server's log too: llama.cpp exports no histograms"),
    Want("tgi_", (), "kv usage", "none to be had: TGI exports no KV usage"),
    Want("tgi_", (), "first token", "none to be had: add up validation, queue and prefill, or ask the client"),
)


class SeenNames:
    """The names on a page, gathered while it is read."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def add(self, name: str) -> None:
        """Remembers a name."""
        if len(self._names) < MAX_NAMES:
            self._names.add(name)

    def say(self, log: ReadLog) -> None:
        """Tells `log` what the programs on the page could have told."""
        for want in WANTS:
            there = any(name.startswith(want.program) for name in self._names)
            if there and not any(name.startswith(n) for n in want.names for name in self._names):
                log.lacks(want.signal, want.how)
