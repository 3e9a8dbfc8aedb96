"""Which replica gets a request."""

from collections.abc import Callable, Sequence

from ragclinic.errors import BadInput
from ragclinic.physics.nearest import nearest
from ragclinic.physics.simulator.arrivals import Arrival
from ragclinic.physics.simulator.replica import Replica

Router = Callable[[Arrival, Sequence[Replica], int], Replica]
"""From a request, the replicas as they stand and the request's number to the one that takes it."""

IMBALANCE = 8
"""A prefix is worth a longer queue only up to this difference in requests (SGLang's router has such a bound)."""


def round_robin(_: Arrival, replicas: Sequence[Replica], number: int) -> Replica:
    """One after the other."""
    return replicas[number % len(replicas)]


def least_loaded(_: Arrival, replicas: Sequence[Replica], number: int) -> Replica:
    """The one with the fewest requests inside; among equals the next in turn."""
    count = len(replicas)
    return min((replicas[(number + i) % count] for i in range(count)), key=lambda r: r.load)


def prefix_aware(arrival: Arrival, replicas: Sequence[Replica], number: int) -> Replica:
    """The one that holds most of the prompt, unless it is much fuller than the emptiest."""
    emptiest = least_loaded(arrival, replicas, number)
    if not arrival.hashes:
        return emptiest
    holder = max(replicas, key=lambda r: r.shared_tokens(arrival.hashes, arrival.hash_tokens))
    if not holder.shared_tokens(arrival.hashes, arrival.hash_tokens) or holder.load > emptiest.load + IMBALANCE:
        return emptiest
    return holder


ROUTERS: dict[str, Router] = {
    "round-robin": round_robin,
    "least-loaded": least_loaded,
    "prefix-aware": prefix_aware,
}


def named_router(name: str) -> Router:
    """The router of this name.

    Raises:
        BadInput: no such router; the message names the nearest.
    """
    if name not in ROUTERS:
        raise BadInput(
            f"router {name}: not known; the nearest is {nearest(name, ROUTERS, 1)[0]}; "
            f"expected one of {', '.join(ROUTERS)}"
        )
    return ROUTERS[name]
