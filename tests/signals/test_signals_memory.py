from pathlib import Path

import pytest

from ragclinic.signals.content import ContentPolicy
from ragclinic.signals.load import load
from ragclinic.signals.memory import memory_samples
from ragclinic.signals.recording import RecordingWriter
from ragclinic.signals.records import Sample

MIB = 1024.0**2


def test_the_fullest_device_counts_with_its_own_limit() -> None:
    samples = [
        Sample(1, "hw.gpu.memory.usage", 70.0, {"hw.id": "0"}),
        Sample(1, "hw.gpu.memory.limit", 80.0, {"hw.id": "0"}),
        Sample(1, "hw.gpu.memory.usage", 23.0, {"hw.id": "1"}),
        Sample(1, "hw.gpu.memory.limit", 24.0, {"hw.id": "1"}),
    ]
    assert [(m.used_bytes, m.total_bytes) for m in memory_samples(samples)] == [(23.0, 24.0)]


def test_dcgm_prints_no_limit_and_it_is_the_sum_of_the_parts() -> None:
    samples = [
        Sample(1, "DCGM_FI_DEV_FB_USED", 70.0, {"gpu": "0"}),
        Sample(1, "DCGM_FI_DEV_FB_FREE", 9.0, {"gpu": "0"}),
        Sample(1, "DCGM_FI_DEV_FB_RESERVED", 1.0, {"gpu": "0"}),
    ]
    (found,) = memory_samples(samples)
    assert (found.used_bytes, found.total_bytes) == (70.0 * MIB, 80.0 * MIB)


def test_the_process_counts_only_where_no_device_is() -> None:
    process = [Sample(1, "process.memory.usage", 3.0), Sample(1, "system.memory.limit", 4.0)]
    assert memory_samples(process)[0].used_bytes == 3.0
    device = [Sample(1, "hw.gpu.memory.usage", 1.0), Sample(1, "hw.gpu.memory.limit", 2.0)]
    assert memory_samples([*process, *device])[0].used_bytes == 1.0


def test_of_tokens_and_a_share_the_fuller_tells_the_cache() -> None:
    samples = [
        Sample(1, "sglang:num_used_tokens", 10.0),
        Sample(1, "sglang:max_total_num_tokens", 100.0),
        Sample(1, "sglang:token_usage", 0.97),
    ]
    assert memory_samples(samples)[0].pressure == pytest.approx(0.97)


def test_a_share_alone_is_enough_and_nothing_is_nothing() -> None:
    assert memory_samples([Sample(1, "vllm:gpu_cache_usage_perc", 0.5)])[0].pressure == 0.5
    assert memory_samples([Sample(1, "up", 1.0)]) == ()


def test_a_loaded_recording_keeps_devices_apart(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path / "r", {}, ContentPolicy()) as writer:
        for device, used, limit in (("0", 70.0, 80.0), ("1", 23.0, 24.0)):
            writer.add(
                Sample(1, "hw.gpu.memory.usage", used, {"hw.id": device}),
                Sample(1, "hw.gpu.memory.limit", limit, {"hw.id": device}),
            )
    assert [m.used_bytes for m in load(tmp_path / "r").memory] == [23.0]
