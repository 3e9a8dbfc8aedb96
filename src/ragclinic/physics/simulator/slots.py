"""llama.cpp's slots: each keeps what it held last, and a prompt goes to the free slot it shares most with."""

from ragclinic.physics.simulator.sequence import Sequence

SIMILARITY = 0.1
"""`slot_prompt_similarity`: a slot is chosen for its prefix from this share of the prompt on."""


class Slots:
    """The prefix cache of a server with slots; `take` and `give_back` bracket a request."""

    def __init__(self, count: int) -> None:
        self._held: list[tuple[int, ...]] = [()] * count
        self._free = list(range(count))  # the one idle for longest first

    def take(self, sequence: Sequence) -> int:
        """Puts the sequence on a free slot and returns how many leading pieces of its prompt are there already."""
        arrival = sequence.arrival
        best, shared = self._free[0], 0
        for slot in self._free:
            common = _common(self._held[slot], arrival.hashes)
            if common > shared:
                best, shared = slot, common
        if shared * arrival.hash_tokens < SIMILARITY * arrival.prompt_tokens:
            best = self._free[0]
            shared = _common(self._held[best], arrival.hashes)
        self._free.remove(best)
        self._held[best] = arrival.hashes
        sequence.slot = best
        return shared

    def give_back(self, sequence: Sequence) -> None:
        """Frees the sequence's slot, which remembers its prompt."""
        if sequence.slot >= 0:
            self._free.append(sequence.slot)
            sequence.slot = -1

    def shared(self, hashes: tuple[int, ...]) -> int:
        """The longest prefix of these hashes that any free slot holds, in pieces: what a router may ask."""
        return max((_common(self._held[slot], hashes) for slot in self._free), default=0)


def _common(held: tuple[int, ...], wanted: tuple[int, ...]) -> int:
    count = 0
    for one, other in zip(held, wanted, strict=False):
        if one != other:
            break
        count += 1
    return count
