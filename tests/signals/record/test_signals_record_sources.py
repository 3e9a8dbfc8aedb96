import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from ragclinic.errors import MissingExtra, Unreachable
from ragclinic.signals.readers.log_vllm import READER as VLLM
from ragclinic.signals.readers.reader import Origin, ReadLog, ReadOptions
from ragclinic.signals.record import smi
from ragclinic.signals.record.nvml import Nvml
from ragclinic.signals.record.scrape import MAX_PAGE_BYTES, Scraper, find_local, scrape
from ragclinic.signals.record.tail import Tail
from ragclinic.signals.records import Sample

PAGE = b'# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine="0"} 3\nbroken{ 1\n'


def make_client(pages: dict[int, httpx.Response]) -> httpx.Client:
    def answer(request: httpx.Request) -> httpx.Response:
        found = pages.get(request.url.port or 80)
        if found is None:
            raise httpx.ConnectError("refused", request=request)
        return found

    return httpx.Client(transport=httpx.MockTransport(answer))


def test_a_page_gives_its_samples_with_the_instance() -> None:
    client = make_client({8000: httpx.Response(200, content=PAGE)})
    found = scrape(client, "http://gpu1:8000/metrics", 7)
    assert found.samples == (
        Sample(7, "vllm:num_requests_running", 3.0, {"engine": "0", "instance": "gpu1:8000"}),
    )
    assert (found.problem, found.bad) == (None, 1)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (httpx.Response(503, content=PAGE), "HTTP 503"),
        (httpx.Response(200, content=b"<html></html>"), "no metrics on the page"),
        (httpx.Response(200, content=b"x" * (MAX_PAGE_BYTES + 1)), "more than"),
        (None, "ConnectError"),
    ],
)
def test_a_page_that_is_none_says_why(answer: httpx.Response | None, problem: str) -> None:
    client = make_client({} if answer is None else {8000: answer})
    found = scrape(client, "http://gpu1:8000/metrics", 7)
    assert found.samples == ()
    assert problem in str(found.problem)


def test_local_servers_are_found_at_their_usual_ports() -> None:
    client = make_client({8000: httpx.Response(200, content=PAGE), 8080: httpx.Response(404)})
    assert find_local(client) == ["http://127.0.0.1:8000/metrics"]


def test_a_scraper_goes_on_where_one_page_fails_and_forgets_a_problem_that_is_over() -> None:
    pages = {8000: httpx.Response(200, content=PAGE)}
    scraper = Scraper(make_client(pages), ["http://a:9400/metrics", "http://b:8000/metrics"])
    assert [s.labels["instance"] for s in scraper(1)] == ["b:8000"]
    assert list(scraper.problems) == ["http://a:9400/metrics"]
    pages[9400] = httpx.Response(200, content=PAGE)
    assert len(list(scraper(2))) == 2
    assert scraper.problems == {}


class NvmlError(Exception):
    """What a fake NVML raises."""


def make_nvml(**changes: Any) -> Any:
    def unsupported(*_: Any) -> Any:
        raise NvmlError("Not Supported")

    parts: dict[str, Any] = {
        "NVMLError": NvmlError,
        "NVML_TEMPERATURE_GPU": 0,
        "NVML_CLOCK_SM": 1,
        "NVML_PCIE_UTIL_TX_BYTES": 0,
        "NVML_PCIE_UTIL_RX_BYTES": 1,
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda *_: b"NVIDIA L40S",
        "nvmlDeviceGetMemoryInfo": lambda device: SimpleNamespace(used=10 + device, total=100),
        "nvmlDeviceGetUtilizationRates": lambda *_: SimpleNamespace(gpu=97, memory=41),
        "nvmlDeviceGetPowerUsage": unsupported,
        "nvmlDeviceGetEnforcedPowerLimit": lambda *_: 350_000,
        "nvmlDeviceGetTemperature": lambda *_: 71,
        "nvmlDeviceGetClockInfo": lambda *_: 1125,
        "nvmlDeviceGetMaxClockInfo": lambda *_: 2520,
        "nvmlDeviceGetCurrPcieLinkGeneration": lambda *_: 4,
        "nvmlDeviceGetCurrPcieLinkWidth": lambda *_: 16,
        "nvmlDeviceGetPcieThroughput": lambda _, kind: 24_000_000 if kind else 900,
        "nvmlDeviceGetCurrentClocksEventReasons": lambda device: 0x4 if device == 0 else 0x1,
    }
    return SimpleNamespace(**{**parts, **changes})


def test_nvml_gives_the_names_of_nvidia_smi_in_base_units() -> None:
    with Nvml(make_nvml()) as nvml:
        found = list(nvml(5))
    first = {s.name: s.value for s in found if s.labels["hw.id"] == "0"}
    assert first["hw.gpu.memory.usage"] == 10.0
    assert first["nvidia_smi.clocks.sm"] == 1125e6
    assert first["nvidia_smi.pcie.rx"] == 24e9
    assert first["nvidia_smi.power.limit"] == 350.0
    assert "hw.gpu.power.draw" not in first
    throttled = [
        (s.labels["hw.id"], s.labels.get("reason"), s.value) for s in found if s.name == "nvidia_smi.throttled"
    ]
    assert throttled == [("0", "sw_power_cap", 1.0), ("1", None, 0.0)]
    assert {s.labels["hw.name"] for s in found} == {"NVIDIA L40S"}


def test_what_a_device_does_not_measure_is_asked_for_once() -> None:
    asked: list[int] = []

    def power(device: int) -> int:
        asked.append(device)
        raise NvmlError("Not Supported")

    nvml = Nvml(make_nvml(nvmlDeviceGetPowerUsage=power))
    list(nvml(1))
    list(nvml(2))
    assert asked == [0, 1]


def test_a_machine_without_a_driver_is_told() -> None:
    def missing() -> None:
        raise NvmlError("Driver Not Loaded")

    with pytest.raises(Unreachable, match="Driver Not Loaded; expected an NVIDIA driver"):
        Nvml(make_nvml(nvmlInit=missing))


def test_an_absent_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    with pytest.raises(MissingExtra, match=r"ragclinic\[gpu\]"):
        Nvml()


def test_nvidia_smi_is_followed_until_it_ends(tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(
        "#!/bin/sh\necho 'index, memory.used [MiB]'\necho '0, 5 MiB'\necho 'NVIDIA-SMI has failed'\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    log = ReadLog()
    assert [s.value for s in smi.follow([str(program)], log)] == [5 * 1024.0**2]
    assert log.bad_rows == 1


def test_nvidia_smi_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unreachable, match="nvidia-smi: not found"):
        smi.command()


class Steps:
    """Stands for waiting: does the next thing to the file each time, and stops after the last."""

    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)

    def __call__(self, _: float) -> bool:
        if not self.steps:
            return True
        self.steps.pop(0)()
        return False


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_only_what_is_written_from_now_on_comes_out_in_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("old\n")
    steps = Steps(lambda: append(path, "ne"), lambda: append(path, "w\nnext\nunfin"))
    with Tail(path, steps) as tail:
        assert [tail.readline() for _ in range(4)] == [b"new\n", b"next\n", b"unfin", b""]


def test_rotation_and_truncation_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("first, a long line\n")

    def rotate() -> None:
        path.rename(tmp_path / "x.log.1")
        path.write_text("rotated\n")

    steps = Steps(rotate, lambda: path.write_text("cut\n"))
    with Tail(path, steps, from_start=True) as tail:
        assert [tail.readline() for _ in range(4)] == [b"first, a long line\n", b"rotated\n", b"cut\n", b""]


def test_a_file_that_comes_later_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "later.log"
    with Tail(path, Steps(lambda: path.write_text("here\n"))) as tail:
        assert [tail.readline(), tail.readline()] == [b"here\n", b""]


def test_a_line_longer_than_the_limit_comes_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("abcdef\n")
    with Tail(path, Steps(), from_start=True) as tail:
        assert [tail.readline(4), tail.readline(4)] == [b"abcd", b"ef\n"]


def test_a_reader_of_logs_takes_the_tail_as_its_stream(tmp_path: Path) -> None:
    path = tmp_path / "vllm.log"
    path.write_text("")
    line = "INFO 12-01 16:20:00 [loggers.py:1] Engine 000: Avg prompt throughput: 1.0 tokens/s, Running: 2 reqs\n"
    log = ReadLog()
    with Tail(path, Steps(lambda: append(path, line))) as tail:
        found = list(VLLM.read(tail, Origin(str(path), modified_ns=10**18), log, ReadOptions()))  # type: ignore[arg-type]
    assert len(found) == 2
