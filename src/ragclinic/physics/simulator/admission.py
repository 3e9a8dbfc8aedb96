"""Whether a waiting request may begin: what the profile reserves, what the cache has, what its tenant may hold."""

from typing import NamedTuple

from ragclinic.physics.simulator.blocks import BlockPool
from ragclinic.physics.simulator.profile import Profile
from ragclinic.physics.simulator.sequence import Sequence


class Entry(NamedTuple):
    """What a request enters with: cached pieces of its prompt, and blocks it takes to begin.

    `claimed` is by how much the available blocks shrink: cached pieces that nobody used counted as available, and
    a sequence swapped in may need its next block in the same step.
    """

    pieces: int
    blocks: int
    claimed: int


class Admission:
    """The rules of one replica. `enter` and `leave` keep count of what each tenant may grow to."""

    def __init__(self, profile: Profile, pool: BlockPool, tenant_share: float | None) -> None:
        self._profile = profile
        self._pool = pool
        self._share = tenant_share
        self._held_tokens: dict[str, int] = {}

    def refusal(self, sequence: Sequence) -> str | None:
        """Why the request can never run here, or None if it can."""
        tokens = most_tokens(sequence)
        limit = self._profile.slot_tokens or self._pool.total * self._profile.block_tokens
        if self._share is not None:
            limit = min(limit, int(limit * self._share))
        if tokens > limit:
            return f"{tokens} tokens exceed the {limit} that the cache holds for one request"
        return None

    def over_share(self, sequence: Sequence) -> bool:
        """Whether the request's tenant would hold more than its share of the cache."""
        if self._share is None:
            return False
        held = self._held_tokens.get(sequence.arrival.tenant, 0)
        whole = self._pool.total * self._profile.block_tokens
        return held > 0 and held + most_tokens(sequence) > self._share * whole

    def entry(self, sequence: Sequence, budget_tokens: int) -> Entry | None:
        """What the request enters with if it may begin in a step of so many tokens, or None if it must wait."""
        if self.over_share(sequence):
            return None
        profile, arrival, size = self._profile, sequence.arrival, self._profile.block_tokens
        if sequence.swapped_context:
            need = -(-sequence.swapped_context // size)
            claimed = need + (sequence.swapped_context % size == 0)
            return Entry(0, need, claimed) if claimed <= self._pool.available else None
        pieces = 0
        if profile.prefix == "blocks" and arrival.hashes and arrival.hash_tokens % size == 0:
            most = (sequence.target_tokens - 1) // arrival.hash_tokens  # at least one token is computed
            pieces = self._pool.cached_groups(arrival.hashes, most)
        cached = pieces * arrival.hash_tokens
        if not profile.chunked and sequence.target_tokens - cached > budget_tokens < profile.step_tokens:
            return None  # it does not fit into what is left of this step; alone it may exceed the limit
        tokens = sequence.target_tokens
        if profile.reserve == "chunk":
            tokens = min(tokens, cached + budget_tokens)
        elif profile.reserve == "whole":
            tokens = most_tokens(sequence)
        need = -(-tokens // size) - cached // size
        claimed = need + (self._pool.unused_of(arrival.hashes, pieces) if pieces else 0)
        return Entry(pieces, need, claimed) if claimed <= self._pool.available else None

    def enter(self, sequence: Sequence) -> None:
        """Counts a request that begins."""
        tenant = sequence.arrival.tenant
        self._held_tokens[tenant] = self._held_tokens.get(tenant, 0) + most_tokens(sequence)

    def leave(self, sequence: Sequence) -> None:
        """Counts a request that ended or was preempted."""
        tenant = sequence.arrival.tenant
        self._held_tokens[tenant] -= most_tokens(sequence)
        if not self._held_tokens[tenant]:
            del self._held_tokens[tenant]


def most_tokens(sequence: Sequence) -> int:
    """The tokens a request may grow to."""
    return sequence.arrival.prompt_tokens + sequence.arrival.output_tokens
