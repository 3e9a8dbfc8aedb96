"""Follows `nvidia-smi` where NVML cannot be used: it prints a row for each device every 500 ms."""

import subprocess
from collections.abc import Callable, Iterator, Sequence
from shutil import which
from typing import IO

from ragclinic.errors import Unreachable
from ragclinic.signals.readers import nvidia_csv
from ragclinic.signals.readers.reader import Origin, ReadLog, ReadOptions
from ragclinic.signals.records import Sample

COLUMNS = (
    "timestamp,index,name,utilization.gpu,utilization.memory,memory.used,memory.total,power.draw,"
    "enforced.power.limit,temperature.gpu,clocks.current.sm,clocks.max.sm,"
    "pcie.link.gen.current,pcie.link.width.current,clocks_throttle_reasons.active"
)
"""Asked for by the older name of the reasons, which newer drivers still take."""


def command(interval_ms: int = 500) -> list[str]:
    """The command that prints them.

    Raises:
        Unreachable: nvidia-smi is not on this machine.
    """
    program = which("nvidia-smi")
    if program is None:
        raise Unreachable(
            "nvidia-smi: not found; expected it on the PATH; install the driver, or leave the GPU out"
        )
    return [program, f"--query-gpu={COLUMNS}", "--format=csv", "-lms", str(interval_ms)]


def follow(
    arguments: Sequence[str],
    log: ReadLog,
    started: Callable[["subprocess.Popen[bytes]"], None] = lambda _: None,
) -> Iterator[Sample]:
    """The samples as they are printed, until the program ends or is ended; `started` is given its process.

    The program is ended with the generator.
    """
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:  # noqa: S603
        started(process)
        try:
            output: IO[bytes] | None = process.stdout
            assert output is not None  # noqa: S101  # a pipe was asked for
            for record in nvidia_csv.read(output, Origin("nvidia-smi"), log, ReadOptions()):  # type: ignore[arg-type]
                if isinstance(record, Sample):
                    yield record
        finally:
            process.terminate()
