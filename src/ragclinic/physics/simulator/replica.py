"""One server: a queue, a batch, a cache, and steps of the forward pass that move its clock.

`advance` is the whole simulation of a server up to a moment: each turn is one step with prefill in it, or a run of
decode steps up to the next event. Nothing here knows other servers or where requests come from.
"""

import heapq
from dataclasses import dataclass

from ragclinic.physics.roofline import StepCost
from ragclinic.physics.simulator.admission import Admission, Entry
from ragclinic.physics.simulator.blocks import BlockPool
from ragclinic.physics.simulator.chunks import Chunk, chunks_step
from ragclinic.physics.simulator.decoding import DecodeBatch
from ragclinic.physics.simulator.profile import Profile
from ragclinic.physics.simulator.run_time import run_line, steps_within
from ragclinic.physics.simulator.sequence import Done, Gauge, Sequence, done
from ragclinic.physics.simulator.slots import Slots

MS = 1000.0


@dataclass(frozen=True, slots=True)
class Server:
    """What a replica is made of: its scheduling, the cost of its steps, and its cache in blocks.

    `swap_block_ms` is what moving one block to the host or back takes. `tenant_share` is the share of the cache
    that one tenant may hold (None: all of it).
    """

    profile: Profile
    cost: StepCost
    blocks: int
    swap_block_ms: float = 0.0
    tenant_share: float | None = None


class Replica:
    """One running server. `done` collects requests that ended; whoever drives it empties the list."""

    def __init__(self, server: Server, number: int = 0) -> None:
        self.number = number
        self.clock_s = 0.0
        self.done: list[Done] = []
        self.pool = BlockPool(server.blocks)
        self.slots = Slots(server.profile.sequences) if server.profile.prefix == "slot" else None
        self._server = server
        self._profile = server.profile
        self._cost = server.cost
        self._batch = DecodeBatch(server.profile.block_tokens, server.cost.window_tokens)
        self._waiting: list[tuple[int, int, Sequence]] = []
        self._prefilling: list[Sequence] = []
        self._running: dict[int, Sequence] = {}  # in the order of admission
        self._admission = Admission(server.profile, self.pool, server.tenant_share)
        self._preemptions = self._prompt_tokens = self._cached_tokens = 0

    @property
    def load(self) -> int:
        """Requests inside, running or waiting: what a router compares."""
        return len(self._running) + len(self._waiting)

    def owned_blocks(self) -> list[int]:
        """Every block by owner (free, shared prefix, a request), for checking that each is there once."""
        return [*self.pool.owners(), *(b for s in self._running.values() for b in s.blocks)]

    def shared_tokens(self, hashes: tuple[int, ...], hash_tokens: int) -> int:
        """How many leading tokens of a prompt this replica holds: what a prefix-aware router compares."""
        if self.slots is not None:
            return self.slots.shared(hashes) * hash_tokens
        return self.pool.cached_groups(hashes, len(hashes)) * hash_tokens

    def gauge(self, time_s: float) -> Gauge:
        """The replica at this moment, for a recording."""
        return Gauge(
            time_s, self.number, self.pool.used, self.pool.total, len(self._running), len(self._waiting),
            self._preemptions, self._prompt_tokens, self._cached_tokens,
        )  # fmt: skip

    def submit(self, sequence: Sequence) -> None:
        """Takes a request in; one that can never fit is turned away at once."""
        arrival = sequence.arrival
        if not self._running and not self._waiting:
            self.clock_s = max(self.clock_s, arrival.time_s)
        error = self._admission.refusal(sequence)
        if error is not None:
            self._end(sequence, error, max(self.clock_s, arrival.time_s))
            return
        heapq.heappush(self._waiting, (arrival.priority, sequence.index, sequence))

    def advance(self, until_s: float) -> None:
        """Works until the clock has reached the moment or nothing is left to do; a step under way is finished."""
        while self.clock_s < until_s and (self._running or self._waiting):
            if self._may_prefill() and self._prefill_step():
                continue
            if not len(self._batch):
                raise RuntimeError(f"replica {self.number} stands still with {len(self._waiting)} waiting")
            self._decode_run(until_s)

    def _may_prefill(self) -> bool:
        room = len(self._running) < self._profile.sequences
        return bool(self._prefilling) or (room and bool(self._waiting))

    def _budget(self) -> int:
        """Tokens of prompt that the next step may compute."""
        decodes = len(self._batch) if self._profile.mixed else 0
        return max(1, self._profile.step_tokens - decodes)

    def _prefill_step(self) -> bool:
        """One step that computes prompt tokens, with the decodes in it where the profile mixes them.

        False where there was none to compute and nothing changed.
        """
        preemptions = self._preemptions
        self._make_room(0)
        budget = self._budget()
        chunks: list[Chunk] = []
        for sequence in list(self._prefilling):
            tokens = min(sequence.target_tokens - sequence.computed_tokens, budget)
            if tokens > 0 and sequence.index in self._running and self._blocks_for(sequence, tokens):
                chunks.append((sequence, tokens))
                budget -= tokens
        # Nothing new begins in a step that had to push something out (vLLM's scheduler says the same).
        while budget > 0 and self._preemptions == preemptions and len(self._running) < self._profile.sequences:
            chunk = self._admit(budget)
            if chunk is None:
                break
            if chunk[1]:
                chunks.append(chunk)
                budget -= chunk[1]
        chunks = [chunk for chunk in chunks if chunk[0].index in self._running]
        if chunks:
            self._compute(chunks)
        return bool(chunks) or self._preemptions != preemptions

    def _blocks_for(self, sequence: Sequence, tokens: int) -> bool:
        """Takes the blocks for the next chunk, preempting later sequences; False if it was preempted itself."""
        held = len(sequence.blocks) + sum(len(g.blocks) for g in sequence.groups)
        need = -(-(sequence.computed_tokens + tokens) // self._profile.block_tokens) - held
        if need > 0:
            self._make_room(need, keep=sequence)
            if sequence.index not in self._running:
                return False
            sequence.blocks.extend(self.pool.take(need))
        return True

    def _admit(self, budget: int) -> Chunk | None:
        """Lets the first waiting request that may begin in, with its first chunk (of 0 tokens if swapped in)."""
        set_aside = []
        chunk = None
        growth = self._growth()
        while self._waiting:
            waiting = heapq.heappop(self._waiting)
            sequence = waiting[2]
            entry = self._admission.entry(sequence, budget)
            if entry is not None and entry.claimed + growth <= self.pool.available:
                chunk = (sequence, self._enter(sequence, entry, budget))
                break
            set_aside.append(waiting)
            if not self._admission.over_share(sequence):
                break  # first come, first served: nobody is overtaken but a tenant that is over its share
        for waiting in set_aside:
            heapq.heappush(self._waiting, waiting)
        return chunk

    def _enter(self, sequence: Sequence, entry: Entry, budget: int) -> int:
        """Makes a waiting request run and returns how many tokens of its prompt this step computes."""
        arrival, pieces = sequence.arrival, entry.pieces
        if pieces:
            self.pool.share(sequence, pieces)
        sequence.blocks.extend(self.pool.take(entry.blocks))
        if self.slots is not None:
            pieces = min(self.slots.take(sequence), (sequence.target_tokens - 1) // arrival.hash_tokens)
        if sequence.scheduled_s is None:
            sequence.scheduled_s = self.clock_s
            sequence.cached_tokens = pieces * arrival.hash_tokens
            self._prompt_tokens += arrival.prompt_tokens
            self._cached_tokens += sequence.cached_tokens
        self._running[sequence.index] = sequence
        self._admission.enter(sequence)
        if sequence.swapped_context:
            self.clock_s += entry.blocks * self._server.swap_block_ms / MS
            context, sequence.swapped_context = sequence.swapped_context, 0
            self._batch.join(sequence, context, arrival.output_tokens - sequence.emitted, self._grows)
            return 0
        sequence.computed_tokens = pieces * arrival.hash_tokens
        self._prefilling.append(sequence)
        return min(sequence.target_tokens - sequence.computed_tokens, budget)

    @property
    def _grows(self) -> bool:
        """Whether decoding sequences must ask for their blocks, not having reserved all at the start."""
        return self._profile.reserve != "whole"

    def _growth(self) -> int:
        """Blocks that the decodes in a mixed step need."""
        return self._batch.blocks_needed(1) if self._profile.mixed else 0

    def _compute(self, chunks: list[Chunk]) -> None:
        """Runs one step over these chunks of prompts and, mixed, one token of every decoding sequence."""
        mixed = self._batch if self._profile.mixed and len(self._batch) else None
        step = chunks_step(chunks, mixed, self._cost.window_tokens)
        self.clock_s += self._cost.step_ms(step) / MS
        if mixed is not None:
            mixed.run(1, self.pool)
        for sequence, tokens in chunks:
            self._computed(sequence, tokens)
        self._collect()

    def _computed(self, sequence: Sequence, tokens: int) -> None:
        arrival = sequence.arrival
        sequence.computed_tokens += tokens
        if self._profile.prefix == "blocks" and sequence.registered < len(arrival.hashes):
            size = self._profile.block_tokens
            if arrival.hash_tokens % size == 0:
                prompt = min(sequence.computed_tokens, arrival.prompt_tokens)
                pieces = min(len(arrival.hashes), prompt // arrival.hash_tokens)
                self.pool.register(sequence, pieces, arrival.hash_tokens // size)
        if sequence.computed_tokens < sequence.target_tokens:
            return
        self._prefilling.remove(sequence)
        sequence.emitted += 1
        if sequence.first_s is None:
            sequence.first_s = self.clock_s
        remaining = arrival.output_tokens - sequence.emitted
        if remaining:
            self._batch.join(sequence, sequence.computed_tokens, remaining, self._grows)
        else:
            self._end(sequence, None, self.clock_s)

    def _decode_run(self, until_s: float) -> None:
        """Decode steps up to the next event: an end, a window, an arrival, or a cache that is full."""
        batch = self._batch
        steps = batch.steps_to_event()
        affordable = batch.steps_affordable(steps, self.pool.available)
        if not affordable:
            self._make_room(0 if self._profile.mixed else batch.blocks_needed(1))
            return
        line = run_line(self._cost, len(batch), batch.context, batch.window_context, batch.inside_window)
        steps = min(affordable, line.steps, steps_within(line, (until_s - self.clock_s) * MS))
        self.clock_s += line.total_ms(steps) / MS
        batch.run(steps, self.pool)
        self._collect()

    def _collect(self) -> None:
        for sequence in self._batch.ended():
            self._end(sequence, None, self.clock_s)

    def _make_room(self, blocks: int, keep: Sequence | None = None) -> None:
        """Preempts until the blocks, and those that mixed decodes need, are there; last of all who asks."""
        while blocks + self._growth() > self.pool.available and self._running:
            victim = self._victim()
            self._preempt(victim)
            if victim is keep:
                return

    def _victim(self) -> Sequence:
        """The last admitted of the lowest priority."""
        last = next(reversed(self._running.values()))
        worst = max(s.arrival.priority for s in self._running.values())
        if last.arrival.priority == worst:
            return last
        return next(s for s in reversed(self._running.values()) if s.arrival.priority == worst)

    def _preempt(self, sequence: Sequence) -> None:
        decoding = sequence.index in self._batch.members
        context = self._batch.context_of(sequence) if decoding else 0
        if decoding:
            self._batch.leave(sequence)
        else:
            self._prefilling.remove(sequence)
        if self._profile.full == "fail":
            self._end(sequence, "the cache is full", self.clock_s)
            return
        self._preemptions += 1
        sequence.preemptions += 1
        if self._profile.full == "swap" and decoding:
            sequence.swapped_context = context
            self.clock_s += -(-context // self._profile.block_tokens) * self._server.swap_block_ms / MS
        else:
            sequence.target_tokens = sequence.arrival.prompt_tokens + sequence.emitted
            sequence.computed_tokens = 0
        self._forget(sequence)
        heapq.heappush(self._waiting, (sequence.arrival.priority, sequence.index, sequence))

    def _forget(self, sequence: Sequence) -> None:
        self.pool.release(sequence)
        if self.slots is not None:
            self.slots.give_back(sequence)
        if self._running.pop(sequence.index, None) is not None:
            self._admission.leave(sequence)

    def _end(self, sequence: Sequence, error: str | None, end_s: float) -> None:
        self._forget(sequence)
        self.done.append(done(sequence, self.number, error, end_s))
