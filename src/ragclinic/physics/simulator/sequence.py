"""One request while it is inside a replica."""

from typing import NamedTuple

from ragclinic.physics.simulator.arrivals import Arrival


class Sequence:
    """The state of one request. Mutable and slotted: the simulator's inner loop works on these.

    `target_tokens` is how much must be computed before the next token comes out, `computed_tokens` how much is;
    after a preemption the target includes what was already produced. `blocks` are its own, `groups` the cached
    prefix blocks that it shares.
    """

    __slots__ = (
        "arrival",
        "blocks",
        "cached_tokens",
        "computed_tokens",
        "emitted",
        "finish_at",
        "first_s",
        "groups",
        "index",
        "joined_at",
        "joined_context",
        "preemptions",
        "registered",
        "scheduled_s",
        "slot",
        "swapped_context",
        "target_tokens",
    )

    def __init__(self, index: int, arrival: Arrival) -> None:
        self.index = index
        self.arrival = arrival
        self.target_tokens = arrival.prompt_tokens
        self.computed_tokens = 0
        self.cached_tokens = 0
        self.emitted = 0
        self.blocks: list[int] = []
        self.groups: list[Group] = []
        self.registered = 0
        self.scheduled_s: float | None = None
        self.first_s: float | None = None
        self.preemptions = 0
        self.joined_at = 0
        self.joined_context = 0
        self.finish_at = -1
        self.swapped_context = 0
        self.slot = -1


class Group:
    """Blocks of the prefix cache that hold one hashed piece of a prompt, and how many sequences use them."""

    __slots__ = ("blocks", "key", "users")

    def __init__(self, key: int, blocks: list[int]) -> None:
        self.key = key
        self.blocks = blocks
        self.users = 1


class Done(NamedTuple):
    """One request's end. Times are in seconds on the simulated clock; `error` says why it was turned away."""

    number: int
    arrival: Arrival
    scheduled_s: float
    first_s: float
    end_s: float
    cached_tokens: int
    preemptions: int
    replica: int
    error: str | None = None

    @property
    def ttft_ms(self) -> float:
        """Milliseconds from arrival to the first token."""
        return (self.first_s - self.arrival.time_s) * 1000

    @property
    def total_ms(self) -> float:
        """Milliseconds from arrival to the last token."""
        return (self.end_s - self.arrival.time_s) * 1000

    @property
    def tpot_ms(self) -> float:
        """Milliseconds for each output token after the first; 0 where there is no other."""
        return (self.end_s - self.first_s) * 1000 / max(1, self.arrival.output_tokens - 1)


def done(sequence: Sequence, replica: int, error: str | None, end_s: float) -> Done:
    """The end of a request; what it never reached is set to the end."""
    return Done(
        number=sequence.index,
        arrival=sequence.arrival,
        scheduled_s=end_s if sequence.scheduled_s is None else sequence.scheduled_s,
        first_s=end_s if sequence.first_s is None else sequence.first_s,
        end_s=end_s,
        cached_tokens=sequence.cached_tokens,
        preemptions=sequence.preemptions,
        replica=replica,
        error=error,
    )


class Gauge(NamedTuple):
    """A replica at one moment: blocks in use and in all, sequences running and waiting, preemptions so far."""

    time_s: float
    replica: int
    used_blocks: int
    total_blocks: int
    running: int
    waiting: int
    preemptions: int
    prompt_tokens: int
    cached_tokens: int
