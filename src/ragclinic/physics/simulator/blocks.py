"""The blocks of a paged KV cache, each free, owned by one sequence, or holding a piece of the prefix cache."""

from collections import OrderedDict

from ragclinic.physics.simulator.sequence import Group, Sequence


class BlockPool:
    """All blocks of one replica.

    A piece of the prefix cache that no sequence uses stays until its blocks are needed, the one unused for longest
    going first (vLLM's free queue, SGLang's radix cache). `available` counts such blocks as free.
    """

    def __init__(self, blocks: int) -> None:
        self.total = blocks
        self._free: list[int] = []
        self._fresh = 0  # blocks from here on were never taken: a cache of millions costs nothing until used
        self._groups: dict[int, Group] = {}
        self._unused: OrderedDict[int, Group] = OrderedDict()
        self._unused_blocks = 0

    @property
    def available(self) -> int:
        """Blocks that can be taken now."""
        return self.total - self._fresh + len(self._free) + self._unused_blocks

    @property
    def used(self) -> int:
        """Blocks that sequences hold or share now."""
        return self._fresh - len(self._free) - self._unused_blocks

    def take(self, count: int) -> list[int]:
        """`count` blocks; the caller has asked `available`. Unused prefixes are dropped as needed."""
        free = self._free
        if len(free) < count and self._fresh < self.total:
            fresh = min(self.total, self._fresh + count - len(free))
            free.extend(range(self._fresh, fresh))
            self._fresh = fresh
        while len(free) < count:
            key, group = self._unused.popitem(last=False)
            del self._groups[key]
            self._unused_blocks -= len(group.blocks)
            free.extend(group.blocks)
        at = len(free) - count
        taken = free[at:]
        del free[at:]
        return taken

    def cached_groups(self, hashes: tuple[int, ...], most: int) -> int:
        """How many leading pieces of a prompt, at most `most`, are in the prefix cache."""
        groups = self._groups
        count = 0
        for key in hashes[:most]:
            if key not in groups:
                break
            count += 1
        return count

    def share(self, sequence: Sequence, count: int) -> None:
        """Lets the sequence use the cached blocks of its first `count` pieces."""
        for key in sequence.arrival.hashes[:count]:
            group = self._groups[key]
            if not group.users:
                del self._unused[key]
                self._unused_blocks -= len(group.blocks)
            group.users += 1
            sequence.groups.append(group)
        sequence.registered = count

    def unused_of(self, hashes: tuple[int, ...], count: int) -> int:
        """Blocks among the first `count` cached pieces that count as available now and will not once shared."""
        return sum(len(self._groups[k].blocks) for k in hashes[:count] if not self._groups[k].users)

    def register(self, sequence: Sequence, pieces: int, group_blocks: int) -> None:
        """Makes the sequence's computed pieces up to `pieces` findable for others; its first blocks are theirs.

        A piece that another sequence computed at the same time stays private, and what follows it too: blocks
        behind a private piece are not worth keeping in order.
        """
        while sequence.registered < pieces:
            key = sequence.arrival.hashes[sequence.registered]
            if key in self._groups:
                sequence.registered = len(sequence.arrival.hashes)
                return
            group = Group(key, sequence.blocks[:group_blocks])
            del sequence.blocks[:group_blocks]
            self._groups[key] = group
            sequence.groups.append(group)
            sequence.registered += 1

    def release(self, sequence: Sequence) -> None:
        """Takes all of a sequence's blocks back; pieces of the prefix cache stay as unused, the last ones to go
        first."""
        self._free.extend(sequence.blocks)
        sequence.blocks = []
        for group in reversed(sequence.groups):
            group.users -= 1
            if not group.users:
                self._unused[group.key] = group
                self._unused_blocks += len(group.blocks)
        sequence.groups = []
        sequence.registered = 0

    def owners(self) -> list[int]:
        """Every block that is free or in the prefix cache, for checking that none is there twice."""
        return [
            *self._free,
            *range(self._fresh, self.total),
            *(b for g in self._groups.values() for b in g.blocks),
        ]
