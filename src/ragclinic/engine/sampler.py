"""Samples memory every few hundred milliseconds: the GPU's through NVML where there is one, else the model
process's and its KV cache's; and the LLM server's own metrics under their own names."""

import logging
import threading
import time
from collections.abc import Callable, Iterator

import httpx
import psutil

from ragclinic.signals.memory import GPU_LIMIT, GPU_USED, HOST_LIMIT, KV_TOTAL, KV_USED, MODEL_RSS
from ragclinic.signals.recording import RecordingWriter
from ragclinic.signals.records import Sample

Source = Callable[[int], Iterator[Sample]]
OTHER_CPU = "ragclinic.host.other_cpu_share"
log = logging.getLogger(__name__)


class Sampler:
    """A thread that asks each source in turn and adds what it says to a recording."""

    def __init__(self, writer: RecordingWriter, sources: list[Source], interval_ms: int) -> None:
        self._writer = writer
        self._sources = sources
        self._interval_s = interval_ms / 1000
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begins to sample."""
        self._thread.start()

    def stop(self) -> None:
        """Ends after the sample under way."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._interval_s):
            time_ns = time.time_ns()
            for source in self._sources:
                try:
                    self._writer.add(*source(time_ns))
                except (httpx.TransportError, psutil.Error, ValueError, KeyError) as error:
                    log.debug("sample left out: %r", error)  # the server may just be starting or ending


def process_memory(pid: Callable[[], int | None]) -> Source:
    """The model process's resident memory beside the machine's, and the CPU that others use."""
    psutil.cpu_percent(None)
    own_process = psutil.Process()
    cores = psutil.cpu_count() or 1
    known: dict[int, psutil.Process] = {}

    def sample(time_ns: int) -> Iterator[Sample]:
        number = pid()
        if number is None:
            return
        process = known.setdefault(number, psutil.Process(number))
        yield Sample(time_ns, MODEL_RSS, float(process.memory_info().rss))
        yield Sample(time_ns, HOST_LIMIT, float(psutil.virtual_memory().total))
        busy = psutil.cpu_percent(None) / 100
        own = (process.cpu_percent(None) + own_process.cpu_percent(None)) / 100 / cores
        yield Sample(time_ns, OTHER_CPU, max(0.0, busy - own))

    return sample


def kv_cache(get: Callable[[str], httpx.Response]) -> Source:
    """Tokens held in llama.cpp's slots, from `/slots`; a slot never used lacks the fields."""

    def sample(time_ns: int) -> Iterator[Sample]:
        slots = get("/slots").json()
        yield Sample(time_ns, KV_USED, float(sum(s.get("n_prompt_tokens", 0) for s in slots)))
        yield Sample(time_ns, KV_TOTAL, float(sum(s["n_ctx"] for s in slots)))

    return sample


def server_metrics(get: Callable[[str], httpx.Response]) -> Source:
    """Every value on llama.cpp's own `/metrics` page."""

    def sample(time_ns: int) -> Iterator[Sample]:
        for line in get("/metrics").text.splitlines():
            name, _, value = line.partition(" ")
            if value and not name.startswith("#"):
                yield Sample(time_ns, name, float(value))

    return sample


def gpu_memory() -> Source | None:
    """Used and total memory of every GPU through NVML, or None where there is no GPU or no `nvidia-ml-py`."""
    try:
        import pynvml

        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
    except ImportError:
        return None
    except pynvml.NVMLError:
        return None

    def sample(time_ns: int) -> Iterator[Sample]:
        for number, handle in enumerate(handles):
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
            yield Sample(time_ns, GPU_USED, float(memory.used), {"hw.id": str(number)})
            yield Sample(time_ns, GPU_LIMIT, float(memory.total), {"hw.id": str(number)})

    return sample if handles else None
