"""Samples NVIDIA devices through NVML, under the names that `readers/nvidia_*` give to what nvidia-smi prints.

What a device does not measure (a laptop's power, a virtual GPU's PCIe) is asked for once and then left out:
unknown, not zero. Asking for PCIe throughput takes NVML 20 ms a direction, so it can be left out.
"""

from collections.abc import Callable, Iterator
from typing import Any, Self

from ragclinic.errors import MissingExtra, Unreachable
from ragclinic.signals.readers.nvidia_names import THROTTLED, active_reasons
from ragclinic.signals.records import Sample

Read = Callable[[Any, Any], float]

# Name -> how NVML tells it, in base units. `nvml` is the module, `device` its handle.
READS: dict[str, Read] = {
    "hw.gpu.utilization": lambda nvml, device: nvml.nvmlDeviceGetUtilizationRates(device).gpu / 100,
    "nvidia_smi.utilization.memory": lambda nvml, device: nvml.nvmlDeviceGetUtilizationRates(device).memory / 100,
    "hw.gpu.power.draw": lambda nvml, device: nvml.nvmlDeviceGetPowerUsage(device) / 1000,
    "nvidia_smi.power.limit": lambda nvml, device: nvml.nvmlDeviceGetEnforcedPowerLimit(device) / 1000,
    "hw.gpu.temperature": lambda nvml, device: nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU),
    "nvidia_smi.clocks.sm": lambda nvml, device: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM) * 1e6,
    "nvidia_smi.clocks.max.sm": lambda nvml, device: (
        nvml.nvmlDeviceGetMaxClockInfo(device, nvml.NVML_CLOCK_SM) * 1e6
    ),
    "nvidia_smi.pcie.link.gen.current": lambda nvml, device: nvml.nvmlDeviceGetCurrPcieLinkGeneration(device),
    "nvidia_smi.pcie.link.width.current": lambda nvml, device: nvml.nvmlDeviceGetCurrPcieLinkWidth(device),
}
PCIE_READS: dict[str, Read] = {
    "nvidia_smi.pcie.rx": lambda nvml, device: (
        nvml.nvmlDeviceGetPcieThroughput(device, nvml.NVML_PCIE_UTIL_RX_BYTES) * 1000
    ),
    "nvidia_smi.pcie.tx": lambda nvml, device: (
        nvml.nvmlDeviceGetPcieThroughput(device, nvml.NVML_PCIE_UTIL_TX_BYTES) * 1000
    ),
}


class Nvml:
    """All devices of this machine; a source for a sampler, and a context manager that lets NVML go again.

    Raises:
        MissingExtra: nvidia-ml-py is not installed.
        Unreachable: there is no driver, or it does not answer.
    """

    def __init__(self, nvml: Any = None, pcie: bool = True) -> None:
        self._nvml = _module() if nvml is None else nvml
        try:
            self._nvml.nvmlInit()
            count = self._nvml.nvmlDeviceGetCount()
            self._devices = [self._nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
        except self._nvml.NVMLError as error:
            raise Unreachable(
                f"NVML: {error}; expected an NVIDIA driver; on other machines leave GPU sampling out"
            ) from error
        self._reads = {**READS, **(PCIE_READS if pcie else {})}
        self._absent: set[tuple[int, str]] = set()
        self._names = [self._name(device) for device in self._devices]

    def __call__(self, time_ns: int) -> Iterator[Sample]:
        """The samples of all devices, at that time."""
        for index, device in enumerate(self._devices):
            labels = {"hw.id": str(index), "hw.name": self._names[index]}
            for name, value in self._memory(index, device):
                yield Sample(time_ns, name, value, labels)
            for name, read in self._reads.items():
                told = self._ask(index, name, read, device)
                if told is not None:
                    yield Sample(time_ns, name, float(told), labels)
            yield from self._throttled(index, device, time_ns, labels)

    def close(self) -> None:
        """Lets NVML go."""
        self._nvml.nvmlShutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, index: int, name: str, read: Read, device: Any) -> float | None:
        if (index, name) in self._absent:
            return None
        try:
            return read(self._nvml, device)
        except self._nvml.NVMLError:
            self._absent.add((index, name))
            return None

    def _memory(self, index: int, device: Any) -> Iterator[tuple[str, float]]:
        found = self._ask(index, "memory", lambda nvml, handle: nvml.nvmlDeviceGetMemoryInfo(handle), device)
        if found is not None:
            info: Any = found
            yield "hw.gpu.memory.usage", float(info.used)
            yield "hw.gpu.memory.limit", float(info.total)

    def _throttled(self, index: int, device: Any, time_ns: int, labels: dict[str, str]) -> Iterator[Sample]:
        mask = self._ask(index, THROTTLED, _reasons, device)
        if mask is None:
            return
        active = list(active_reasons(int(mask)))
        for reason in active:
            yield Sample(time_ns, THROTTLED, 1.0, {**labels, "reason": reason})
        if not active:
            yield Sample(time_ns, THROTTLED, 0.0, labels)

    def _name(self, device: Any) -> str:
        name = self._nvml.nvmlDeviceGetName(device)
        return name.decode() if isinstance(name, bytes) else str(name)  # bytes before nvidia-ml-py 11.5


def _reasons(nvml: Any, device: Any) -> float:
    """The bit mask of reasons, which drivers before 530 called throttle reasons."""
    ask = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    mask: float = (ask or nvml.nvmlDeviceGetCurrentClocksThrottleReasons)(device)
    return mask


def _module() -> Any:
    try:
        import pynvml  # the module of nvidia-ml-py
    except ImportError as error:
        raise MissingExtra("nvidia-ml-py", "gpu") from error
    return pynvml
