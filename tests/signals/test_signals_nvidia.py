import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragclinic.signals.pcie import limit_bytes_per_s, use
from ragclinic.signals.readers import nvidia_csv, nvidia_dmon, nvidia_query
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import Sample

DATA = Path(__file__).parents[1] / "data"
MIB = 1024.0**2
AT_16_20 = 1_796_142_000_000_000_000  # 2026-12-01T16:20:00Z
CSV_HEAD = "timestamp, memory.used [MiB]\n"


def make_read(reader: Reader, data: str) -> tuple[list[Sample], ReadLog]:
    log = ReadLog()
    records = reader.read(io.BytesIO(data.encode()), Origin("gpu", modified_ns=AT_16_20), log, ReadOptions())
    return [r for r in records if isinstance(r, Sample)], log


def values(samples: list[Sample], name: str) -> list[tuple[str, float]]:
    return [(s.labels["hw.id"], s.value) for s in samples if s.name == name]


def test_csv_gives_base_units_for_each_device() -> None:
    found, log = make_read(nvidia_csv.READER, (DATA / "nvidia-smi-csv/two-gpus.csv").read_text())
    assert values(found, "hw.gpu.memory.usage")[:2] == [("0", 43120 * MIB), ("1", 612 * MIB)]
    assert values(found, "hw.gpu.utilization") == [("0", 0.97), ("1", 0.03), ("0", 0.98)]
    assert values(found, "nvidia_smi.clocks.sm")[2] == ("0", 1125e6)
    assert found[0].time_ns == AT_16_20 + 112_000_000
    assert found[0].labels["hw.name"] == "NVIDIA L40S"
    assert {b.kind: b.count for b in log.bad} == {"nvidia-smi failed": 1, "not a row": 1}
    assert (log.kept, log.skipped) == (4, 1)


def test_csv_throttle_reasons_come_from_the_mask_and_idle_is_none() -> None:
    found, _ = make_read(nvidia_csv.READER, (DATA / "nvidia-smi-csv/two-gpus.csv").read_text())
    reasons = [
        (s.labels["hw.id"], s.labels.get("reason"), s.value) for s in found if s.name == "nvidia_smi.throttled"
    ]
    assert ("0", "sw_power_cap", 1.0) in reasons
    assert ("0", "sw_thermal_slowdown", 1.0) in reasons
    assert ("1", None, 0.0) in reasons


@pytest.mark.parametrize(
    ("head", "row", "name", "value"),
    [
        ("memory.used [MiB]", "43120", "hw.gpu.memory.usage", 43120 * MIB),  # nounits
        ("memory.used [MiB]", "43120 MiB", "hw.gpu.memory.usage", 43120 * MIB),
        ("power.draw.instant [W]", "31.5 W", "hw.gpu.power.draw", 31.5),
        ("clocks_throttle_reasons.hw_slowdown", "Active", "nvidia_smi.throttled", 1.0),
        ("temperature.memory", "60", "nvidia_smi.temperature.memory", 60.0),
    ],
)
def test_csv_knows_columns_of_all_generations(head: str, row: str, name: str, value: float) -> None:
    found, _ = make_read(nvidia_csv.READER, f"timestamp, {head}\n2026/12/01 16:20:00.000, {row}\n")
    assert [(s.name, s.value) for s in found] == [(name, value)]


def test_csv_without_a_timestamp_keeps_the_order_of_its_sweeps() -> None:
    found, _ = make_read(nvidia_csv.READER, "index, utilization.gpu [%]\n0, 1 %\n1, 2 %\n0, 3 %\n1, 4 %\n")
    assert [s.time_ns - AT_16_20 for s in found] == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("2026/12/01 16:20:00.000, NaN MiB", "expected a finite number"),
        ("2026/12/01 16:20:00.000, 5 parsecs", "expected a unit of"),
        ("2026/12/01 16:20:00.000", "1 cells; expected 2"),
        ("2026/13/01 16:20:00.000, 5 MiB", "expected YYYY/MM/DD"),
        ("2026/12/01 16:20:00.000, lots", "expected a number"),
    ],
)
def test_csv_says_what_is_wrong_with_a_row(row: str, found: str) -> None:
    samples, log = make_read(nvidia_csv.READER, CSV_HEAD + row)
    assert samples == []
    assert found in log.bad[0].found
    assert str(log.bad[0].first) == "gpu:2"


def test_csv_says_which_signals_it_lacks() -> None:
    _, log = make_read(nvidia_csv.READER, CSV_HEAD)
    assert set(log.missing) == {"throttle reasons", "device use", "pcie throughput"}


def test_dmon_gives_rates_in_bytes_and_the_time_it_prints() -> None:
    found, log = make_read(nvidia_dmon.READER, (DATA / "nvidia-smi-dmon/dmon.txt").read_text())
    assert values(found, "nvidia_smi.pcie.rx") == [("0", 24310e6), ("1", 12e6), ("0", 24502e6), ("1", 11e6)]
    assert values(found, "hw.gpu.memory.usage")[0] == ("0", 22871 * MIB)
    assert {s.time_ns - AT_16_20 for s in found} == {0, 10**9}
    assert (log.kept, log.skipped, log.bad_rows) == (4, 2, 0)


def test_dmon_without_times_is_taken_to_print_once_a_second() -> None:
    head = "# gpu    sm    mem\n# Idx     %      %\n"
    table = f"{head}    0     1     2\n    0     3     -\n{head}    0     5     6\n"
    found, log = make_read(nvidia_dmon.READER, table)
    assert [s.time_ns - AT_16_20 for s in found] == [0, 0, 10**9, 2 * 10**9, 2 * 10**9]
    assert any("1 s apart" in note for note in log.notes)
    assert "times" in log.missing


def test_pmon_gives_memory_by_process_and_passes_over_idle_devices() -> None:
    found, log = make_read(nvidia_dmon.READER, (DATA / "nvidia-smi-dmon/pmon.txt").read_text())
    memory = [s for s in found if s.name == "nvidia_smi.process.fb"]
    assert [(s.labels["pid"], s.labels["command"], s.value) for s in memory] == [
        ("13532", "VLLM::EngineCor", 20992 * MIB),
        ("14010", "python3", 1620 * MIB),
    ]
    assert (log.kept, log.skipped) == (2, 3)


def test_dmon_rows_before_a_header_and_short_rows_are_bad() -> None:
    _, log = make_read(nvidia_dmon.READER, "    0   1   2\n# gpu  sm  mem\n# Idx  %  %\n   0   1\n   0   x   1\n")
    assert {b.kind: b.count for b in log.bad} == {"no header": 1, "not a row": 2}


def test_query_tells_an_unlicensed_virtual_gpu_and_its_active_reasons() -> None:
    found, log = make_read(nvidia_query.READER, (DATA / "nvidia-smi-q/vgpu.txt").read_text())
    assert values(found, "nvidia_smi.vgpu.unlicensed") == [("00000000:02:00.0", 1.0)]
    active = {s.labels["reason"] for s in found if s.name == "nvidia_smi.throttled" and s.value}
    assert active == {"sw_thermal_slowdown"}
    assert values(found, "hw.gpu.memory.usage")[0][1] == 19830 * MIB
    assert values(found, "nvidia_smi.pcie.tx")[0][1] == 1150e3
    assert {s.labels["hw.name"] for s in found} == {"NVIDIA L40S-24Q"}
    assert {s.time_ns for s in found} == {AT_16_20}
    assert log.kept == 1


def test_query_reads_the_names_of_older_drivers_and_repeated_blocks() -> None:
    block = (
        "GPU 0000:02:00.0\n    Clocks Throttle Reasons\n        SW Power Cap : Active\n"
        "    Power Readings\n        Power Draw : 20.1 W\n    FB Memory Usage\n        Used : much\n"
    )
    found, log = make_read(nvidia_query.READER, f"==NVSMI LOG==\n{block}{block}")
    assert [s.value for s in found if s.name == "hw.gpu.power.draw"] == [20.1, 20.1]
    assert [s.labels["reason"] for s in found if s.name == "nvidia_smi.throttled"] == ["sw_power_cap"] * 2
    assert (log.kept, log.bad_rows) == (2, 2)


def test_pcie_use_is_the_busier_direction_over_the_links_limit() -> None:
    samples = [
        Sample(1, "nvidia_smi.pcie.link.gen.current", 1.0, {"hw.id": "0"}),  # an idle link trains down
        Sample(2, "nvidia_smi.pcie.link.gen.current", 4.0, {"hw.id": "0"}),
        Sample(1, "nvidia_smi.pcie.link.width.current", 16.0, {"hw.id": "0"}),
        Sample(3, "nvidia_smi.pcie.rx", 30e9, {"hw.id": "0"}),
        Sample(3, "nvidia_smi.pcie.tx", 20e9, {"hw.id": "0"}),
    ]
    limit = limit_bytes_per_s(4, 16)
    assert limit == pytest.approx(31.5e9, rel=0.001)
    assert [(p.time_ns, round(p.value, 3)) for p in use(samples)] == [(3, 0.952)]


def test_pcie_use_is_unknown_without_a_link_and_can_be_told_by_hand() -> None:
    samples = [Sample(3, "DCGM_FI_PROF_PCIE_RX_BYTES", 8e9, {"gpu": "0"})]
    assert use(samples) == ()
    assert [(p.time_ns, round(p.value, 3)) for p in use(samples, generation=3, width=16)] == [(3, 0.508)]
    assert use(samples, generation=9, width=16) == ()


@given(st.text(max_size=120))
def test_any_text_behind_a_header_is_survived(data: str) -> None:
    for reader, head in (
        (nvidia_csv.READER, CSV_HEAD),
        (nvidia_dmon.READER, "# gpu  sm  mem\n# Idx  %  %\n"),
        (nvidia_query.READER, "NVSMI LOG\nGPU 00000000:02:00.0\n    Utilization\n        "),
    ):
        reader.sniff(data.encode("utf-8", "replace"))
        found, log = make_read(reader, head + data.encode("utf-8", "replace").decode())
        assert all(s.value == s.value for s in found)
        assert log.rows >= log.kept
