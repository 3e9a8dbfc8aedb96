"""A progress bar in bytes on standard error, for reading files; silent where nobody watches."""

from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn


class BytesProgress:
    """Shows how much of the inputs was read, and of which."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None)

    def start(self, total_bytes: int | None) -> None:
        """Sets how much there is."""
        self._bar.update(self._task, total=total_bytes)

    def advance(self, path: str, taken_bytes: int) -> None:
        """Moves on by what was read of a file."""
        self._bar.update(self._task, advance=taken_bytes, description=Path(path).name[:32])

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
