"""The simulation: requests in order of arrival, through a router, into replicas; what comes out is a stream."""

from collections.abc import Iterable, Iterator

from ragclinic.physics.simulator.arrivals import Arrival
from ragclinic.physics.simulator.replica import Replica, Server
from ragclinic.physics.simulator.router import Router, least_loaded
from ragclinic.physics.simulator.sequence import Done, Gauge, Sequence

FOREVER = float("inf")


def simulate(
    server: Server,
    arrivals: Iterable[Arrival],
    replicas: int = 1,
    router: Router = least_loaded,
    sample_s: float | None = None,
) -> Iterator[Done | Gauge]:
    """Every request's end, and every `sample_s` seconds a gauge of each replica (at the next arrival).

    Only requests inside the servers are held, so memory does not grow with the number of arrivals. The result
    depends on the arguments alone. Arrivals must be in order of time; `ValueError` where one is not.
    """
    servers = [Replica(server, number) for number in range(replicas)]
    last_s = -FOREVER
    next_sample_s = -FOREVER if sample_s is not None else FOREVER
    for index, arrival in enumerate(arrivals):
        if arrival.time_s < last_s:
            raise ValueError(f"arrival {index} at {arrival.time_s} s comes after one at {last_s} s")
        last_s = arrival.time_s
        for replica in servers:
            replica.advance(arrival.time_s)
            if replica.done:
                yield from _drained(replica)
        if arrival.time_s >= next_sample_s and sample_s is not None:
            yield from (replica.gauge(arrival.time_s) for replica in servers)
            next_sample_s = arrival.time_s + sample_s
        router(arrival, servers, index).submit(Sequence(index, arrival))
    for replica in servers:
        replica.advance(FOREVER)
        yield from _drained(replica)
        if sample_s is not None:
            yield replica.gauge(replica.clock_s)


def _drained(replica: Replica) -> Iterator[Done]:
    done, replica.done = replica.done, []
    return iter(done)
