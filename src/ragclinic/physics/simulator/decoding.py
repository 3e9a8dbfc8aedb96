"""The sequences that decode together, and how many steps of it can be taken at once.

Between two events nothing happens but that every sequence grows by one token a step, so a whole run of steps is
one calculation: contexts are kept as a sum, ends in a heap by the count of steps, and growth of blocks by the
step, modulo the block size, at which a sequence needs its next one.
"""

import heapq

from ragclinic.physics.simulator.blocks import BlockPool
from ragclinic.physics.simulator.sequence import Sequence


class DecodeBatch:
    """The decoding sequences of one replica; `clock` counts decode steps since the start."""

    def __init__(self, block_tokens: int, window_tokens: int | None) -> None:
        self.clock = 0
        self.context = 0
        """The sum of all contexts, in tokens."""
        self.members: dict[int, Sequence] = {}
        self._block_tokens = block_tokens
        self._window = window_tokens
        self._growing: list[dict[int, Sequence]] = [{} for _ in range(block_tokens)]
        self._ends: list[tuple[int, int, Sequence]] = []
        self._beyond = 0  # tokens of all contexts beyond the window
        self._beyond_count = 0
        self._crossings: list[tuple[int, int, int]] = []  # step, index, step of joining

    def __len__(self) -> int:
        return len(self.members)

    @property
    def window_context(self) -> int:
        """The sum of what sliding layers see of all contexts."""
        return self.context - self._beyond

    @property
    def inside_window(self) -> int:
        """How many sequences are still shorter than the window."""
        return len(self.members) - self._beyond_count

    def join(self, sequence: Sequence, context: int, steps: int, grows: bool) -> None:
        """Adds a sequence of this context that has `steps` tokens to go; `grows` if it must ask for its blocks."""
        sequence.joined_at, sequence.joined_context = self.clock, context
        sequence.finish_at = self.clock + steps
        self.members[sequence.index] = sequence
        self.context += context
        heapq.heappush(self._ends, (sequence.finish_at, sequence.index, sequence))
        if grows:
            self._growing[(self.clock - context) % self._block_tokens][sequence.index] = sequence
        if self._window is not None:
            if context >= self._window:
                self._beyond += context - self._window
                self._beyond_count += 1
            else:
                heapq.heappush(self._crossings, (self.clock + self._window - context, sequence.index, self.clock))

    def context_of(self, sequence: Sequence) -> int:
        """The present context of one member."""
        return sequence.joined_context + self.clock - sequence.joined_at

    def leave(self, sequence: Sequence) -> None:
        """Removes a member; its tokens produced so far are counted in `emitted`."""
        context = self.context_of(sequence)
        del self.members[sequence.index]
        self.context -= context
        self._growing[(sequence.joined_at - sequence.joined_context) % self._block_tokens].pop(
            sequence.index, None
        )
        if self._window is not None and context >= self._window:
            self._beyond -= context - self._window
            self._beyond_count -= 1
        sequence.emitted += self.clock - sequence.joined_at
        sequence.finish_at = -1

    def steps_to_event(self) -> int:
        """Steps until a sequence ends or crosses its window; only for a batch that is not empty."""
        while self._ends[0][2].finish_at != self._ends[0][0]:
            heapq.heappop(self._ends)  # preempted since
        steps = self._ends[0][0] - self.clock
        while self._crossings:
            if self._crosses(*self._crossings[0]):
                return min(steps, self._crossings[0][0] - self.clock)
            heapq.heappop(self._crossings)
        return steps

    def _crosses(self, at: int, index: int, joined_at: int) -> bool:
        """Whether an entry still holds: a member preempted since has another one, or none."""
        member = self.members.get(index)
        if member is None or member.joined_at != joined_at:
            return False
        return member.joined_context + at - joined_at == self._window

    def blocks_needed(self, steps: int) -> int:
        """How many blocks all members need for so many steps."""
        size = self._block_tokens
        if steps == 1:
            return len(self._growing[self.clock % size])
        cycles, rest = divmod(steps, size)
        total = cycles * sum(map(len, self._growing)) if cycles else 0
        return total + sum(len(self._growing[(self.clock + j) % size]) for j in range(rest))

    def steps_affordable(self, steps: int, blocks: int) -> int:
        """The most steps, up to `steps`, for which so many blocks are enough."""
        if self.blocks_needed(steps) <= blocks:
            return steps
        low, high = 0, steps
        while high - low > 1:
            middle = (low + high) // 2
            if self.blocks_needed(middle) <= blocks:
                low = middle
            else:
                high = middle
        return low

    def run(self, steps: int, pool: BlockPool) -> None:
        """Takes so many steps: every member grows, with blocks from the pool."""
        size = self._block_tokens
        for offset in range(min(steps, size)):
            growing = self._growing[(self.clock + offset) % size]
            if growing:
                count = 1 + (steps - 1 - offset) // size
                taken = pool.take(count * len(growing))
                for number, sequence in enumerate(growing.values()):
                    sequence.blocks += taken[number * count : (number + 1) * count]
        self.clock += steps
        self.context += steps * len(self.members)
        self._beyond += steps * self._beyond_count
        while self._crossings and self._crossings[0][0] <= self.clock:
            entry = heapq.heappop(self._crossings)
            if self._crosses(*entry):
                self._beyond_count += 1
                self._beyond += self.clock - entry[0]

    def ended(self) -> list[Sequence]:
        """Removes and returns the members that have all their tokens."""
        found = []
        while self._ends and self._ends[0][0] <= self.clock:
            at, _, sequence = heapq.heappop(self._ends)
            if sequence.finish_at == at:
                self.leave(sequence)
                found.append(sequence)
        return found
