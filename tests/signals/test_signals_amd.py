import io
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ragclinic.signals.readers.amd_smi import READER, parse_card, parse_device
from ragclinic.signals.readers.reader import Origin, ReadLog, ReadOptions
from ragclinic.signals.records import Sample

DATA = Path(__file__).parents[1] / "data/amd-smi-json"
MIB = 1024.0**2


def make_read(data: bytes) -> tuple[list[Sample], ReadLog]:
    log = ReadLog()
    records = READER.read(io.BytesIO(data), Origin("amd", modified_ns=7), log, ReadOptions())
    return [r for r in records if isinstance(r, Sample)], log


def test_amd_smi_gives_base_units() -> None:
    found, log = make_read((DATA / "amd-smi.json").read_bytes())
    values = {s.name: s.value for s in found}
    assert values["hw.gpu.memory.usage"] == 171230 * MIB
    assert values["hw.gpu.utilization"] == 0.96
    assert values["amd_smi.clocks.gfx"] == 2098e6
    assert values["amd_smi.pcie.bandwidth"] == 150e6
    assert found[0].labels == {"hw.id": "0", "hw.vendor": "AMD"}
    assert log.kept == 1


def test_rocm_smi_documents_keep_their_order_and_a_broken_one_is_counted() -> None:
    found, log = make_read((DATA / "rocm-smi.json").read_bytes())
    used = [(s.time_ns, s.value) for s in found if s.name == "hw.gpu.memory.usage"]
    assert used == [(7, 24152801280.0), (8, 24152801280.0)]
    assert [s.value for s in found if s.name == "hw.gpu.power.draw"] == [301.0]
    assert (log.kept, log.bad_rows) == (2, 1)


def test_of_two_spellings_the_newest_counts() -> None:
    card = {"Current Socket Graphics Package Power (W)": "10", "Average Graphics Package Power (W)": "20"}
    assert list(parse_card(card)) == [("hw.gpu.power.draw", 10.0)]


def test_values_that_are_not_there_or_not_finite_are_left_out() -> None:
    assert (
        list(parse_device({"usage": {"gfx_activity": "N/A", "umc_activity": {"value": "NaN", "unit": "%"}}})) == []
    )


def test_a_device_without_measurements_is_bad() -> None:
    _, log = make_read(b'[{"gpu": 0}]')
    assert log.bad_rows == 1


@given(
    st.recursive(
        st.none() | st.floats() | st.text(max_size=5),
        lambda inner: st.dictionaries(
            st.sampled_from(["gpu", "card0", "usage", "value", "unit", "gpu_data", "GPU use (%)"]),
            inner,
            max_size=4,
        ),
    )
)
def test_any_json_is_survived(document: object) -> None:
    make_read(json.dumps(document).encode())
