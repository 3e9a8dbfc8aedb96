"""What one request went through, collected while it runs and recorded after the user has the answer."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ragclinic.signals.records import AttributeValue

Clock = Callable[[], int]


@dataclass(frozen=True, slots=True)
class StageRun:
    """One stage with its wall-clock bounds and the public attributes of its span."""

    name: str
    start_ns: int
    end_ns: int
    attributes: dict[str, AttributeValue] = field(default_factory=dict)


@dataclass
class RequestTrace:
    """A request on its way. `stages` are in the order in which they ended."""

    clock: Clock = time.time_ns
    start_ns: int = 0
    end_ns: int = 0
    first_byte_ns: int | None = None
    stages: list[StageRun] = field(default_factory=list)
    attributes: dict[str, AttributeValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.start_ns = self.clock()

    @contextmanager
    def stage(self, name: str, **attributes: AttributeValue) -> Iterator[dict[str, AttributeValue]]:
        """Times a block; attributes known only at its end can be put into the dictionary it yields."""
        start_ns = self.clock()
        try:
            yield attributes
        finally:
            self.stages.append(StageRun(name, start_ns, self.clock(), attributes))

    def first_byte(self) -> None:
        """Notes the moment at which the user got the first piece of the answer; later calls change nothing."""
        if self.first_byte_ns is None:
            self.first_byte_ns = self.clock()

    def finish(self) -> None:
        """Notes the end; an answer that was not streamed reaches the user only now."""
        self.end_ns = self.clock()
        if self.first_byte_ns is None:
            self.first_byte_ns = self.end_ns
