"""A progress bar on standard error, so that standard output stays the result."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

PLAIN_EVERY_S = 10.0
"""Where nobody watches (a pipe, CI), one line per step and then one every so often."""


class StepProgress:
    """One line per step; on a terminal it moves, elsewhere it is printed plainly."""

    def __init__(self, titles: dict[str, str]) -> None:
        self._titles = titles
        self._console = Console(stderr=True)
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[detail]}", style="dim"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = None if not self._console.is_terminal else self._bar.add_task("", total=None, detail="")
        self._said_s = 0.0
        self._done = 0

    def step(self, name: str, total: int | None = None) -> None:
        """A new step begins."""
        title = self._titles.get(name, name)
        self._done = 0
        self._said_s = time.monotonic()
        if self._task is None:
            self._console.print(f"{title} ...", highlight=False)
            return
        self._bar.remove_task(self._task)
        self._task = self._bar.add_task(title, total=total, detail="")

    def advance(self, detail: str = "") -> None:
        """One more part of the step is done."""
        self._done += 1
        if self._task is not None:
            self._bar.update(self._task, advance=1, detail=detail[:60])
        elif time.monotonic() - self._said_s > PLAIN_EVERY_S:
            self._said_s = time.monotonic()
            self._console.print(f"  {self._done}: {detail}", highlight=False)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
