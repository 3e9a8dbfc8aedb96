"""A GGUF file written by the package `gguf` is read back by our header reader."""

import contextlib
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragclinic.errors import BadInput
from ragclinic.physics.ggml import BY_NAME
from ragclinic.physics.memory import llama_cpp_weights
from ragclinic.physics.models import from_config, from_gguf
from ragclinic.physics.models.gguf_header import read_header

gguf = pytest.importorskip("gguf")


def make_gguf(path: Path, *, window: int = 0, tokens: int = 50) -> bytes:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(96)
    writer.add_context_length(512)
    writer.add_head_count(4)
    writer.add_head_count_kv([2, 2])
    writer.add_token_list([f"t{i}" for i in range(tokens)])
    if window:
        writer.add_sliding_window(window)
        writer.add_sliding_window_pattern([True, False])
    blocks = np.zeros((64, 64 // 32 * 18), np.uint8)
    writer.add_tensor("token_embd.weight", np.zeros((tokens, 64), np.float16))
    writer.add_tensor("blk.0.attn_q.weight", blocks, raw_dtype=gguf.GGMLQuantizationType.Q4_0)
    writer.add_tensor("blk.0.attn_norm.weight", np.zeros(64, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


def test_physics_gguf_types_equal_those_of_the_package() -> None:
    sizes = {k.name.lower(): v for k, v in gguf.constants.GGML_QUANT_SIZES.items()}
    assert {n: (t.block_elements, t.block_bytes) for n, t in BY_NAME.items() if n in sizes} == sizes


def test_physics_gguf_a_written_file_is_read_back(tmp_path: Path) -> None:
    model = from_gguf(BytesIO(make_gguf(tmp_path / "m.gguf")), "m.gguf")
    assert (len(model.layers), model.hidden, model.vocabulary, model.window_tokens) == (2, 64, 50, 512)
    assert model.layers[0].kv_heads == 2
    assert model.parameters.embedding == 50 * 64
    assert model.parameters.linear == 64 * 64
    assert model.parameters.other == 64
    assert model.stored_bytes == 50 * 64 * 2 + 64 * 36 + 64 * 4
    assert model.stored_type == "q4_0"
    assert llama_cpp_weights(model, repack=False) == (model.stored_bytes,)
    assert llama_cpp_weights(model, repack=True) == (model.stored_bytes, 64 * 36)


def test_physics_gguf_sliding_layers_follow_the_pattern(tmp_path: Path) -> None:
    model = from_gguf(BytesIO(make_gguf(tmp_path / "m.gguf", window=16)), "m.gguf")
    assert [layer.window_tokens for layer in model.layers] == [16, None]


def test_physics_gguf_the_header_equals_what_the_package_reads(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    header = read_header(BytesIO(make_gguf(path)), "m.gguf")
    theirs = gguf.GGUFReader(path)
    assert [(t.name, t.size_bytes, t.elements) for t in header.tensors] == [
        (t.name, t.n_bytes, t.n_elements) for t in theirs.tensors
    ]
    assert header.values["llama.block_count"] == theirs.fields["llama.block_count"].contents()
    assert header.values["tokenizer.ggml.tokens.length"] == len(theirs.fields["tokenizer.ggml.tokens"].contents())


@given(keep=st.integers(0, 100_000), flip=st.integers(0, 600), value=st.integers(0, 255))
def test_physics_gguf_a_damaged_header_is_one_clear_error_or_a_model(
    tmp_path_factory: pytest.TempPathFactory, keep: int, flip: int, value: int
) -> None:
    damaged = bytearray(_whole(tmp_path_factory)[:keep])
    if flip < len(damaged):
        damaged[flip] = value
    with contextlib.suppress(BadInput):  # any other exception fails the test
        from_gguf(BytesIO(bytes(damaged)), "m.gguf")


_cache: list[bytes] = []


def _whole(factory: pytest.TempPathFactory) -> bytes:
    if not _cache:
        _cache.append(make_gguf(factory.mktemp("gguf") / "m.gguf"))
    return _cache[0]


def test_physics_gguf_a_file_cut_off_says_so(tmp_path: Path) -> None:
    whole = make_gguf(tmp_path / "m.gguf")
    with pytest.raises(BadInput, match=r"^m.gguf: the GGUF header is cut off or damaged at byte \d+ .*download"):
        from_gguf(BytesIO(whole[:300]), "m.gguf")


def test_physics_gguf_an_unknown_version_is_named(tmp_path: Path) -> None:
    whole = bytearray(make_gguf(tmp_path / "m.gguf"))
    whole[4] = 9
    with pytest.raises(BadInput, match="GGUF version 9; expected 2 or 3"):
        from_gguf(BytesIO(bytes(whole)), "m.gguf")


def test_physics_gguf_a_model_of_billions_of_layers_is_refused_at_once() -> None:
    config = {"num_hidden_layers": 2**31, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100}
    with pytest.raises(BadInput, match=r"expected at most 1,024 layers"):
        from_config(config | {"intermediate_size": 128}, "broken")
