"""The serving simulator: arrivals, a scheduler like a known server's, a paged cache, and what users would see."""

from ragclinic.physics.simulator.arrivals import (
    Arrival,
    azure_arrivals,
    bursts,
    faster,
    fixed_lengths,
    merged,
    mooncake_arrivals,
    poisson,
    repeated,
    spread_lengths,
)
from ragclinic.physics.simulator.profile import LLAMA_CPP, PROFILES, SGLANG, TGI, VLLM, Profile, named_profile
from ragclinic.physics.simulator.recording import to_records
from ragclinic.physics.simulator.replica import Replica, Server
from ragclinic.physics.simulator.router import ROUTERS, Router, named_router
from ragclinic.physics.simulator.run import simulate
from ragclinic.physics.simulator.sequence import Done, Gauge
from ragclinic.physics.simulator.summary import Percentiles, Summary, percentile, summarise

__all__ = [
    "LLAMA_CPP",
    "PROFILES",
    "ROUTERS",
    "SGLANG",
    "TGI",
    "VLLM",
    "Arrival",
    "Done",
    "Gauge",
    "Percentiles",
    "Profile",
    "Replica",
    "Router",
    "Server",
    "Summary",
    "azure_arrivals",
    "bursts",
    "faster",
    "fixed_lengths",
    "merged",
    "mooncake_arrivals",
    "named_profile",
    "named_router",
    "percentile",
    "poisson",
    "repeated",
    "simulate",
    "spread_lengths",
    "summarise",
    "to_records",
]
