import json
from io import BytesIO

import pytest

from ragclinic.errors import BadInput
from ragclinic.physics.models import from_config, known_models, named_model, touched_share

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
}


def test_physics_models_the_table_has_thirty_models_and_each_builds() -> None:
    assert len(known_models()) >= 30
    for name in known_models():
        model = named_model(name)
        assert model.layers
        assert model.name == name


@pytest.mark.parametrize("name", [n for n, row in known_models().items() if "published" in row])
def test_physics_models_counted_parameters_equal_the_published_count(name: str) -> None:
    assert named_model(name).parameters.total == known_models()[name]["published"]


@pytest.mark.parametrize(
    ("name", "attention"),
    [
        ("llama-2-7b", "MHA"),
        ("llama-3-8b", "GQA"),
        ("falcon-7b", "MQA"),
        ("deepseek-v3", "MLA"),
        ("mistral-7b-v0.1", "GQA, sliding window in 32 of 32 layers"),
        ("gemma-2-9b", "GQA, sliding window in 21 of 42 layers"),
        ("qwen3-next-80b-a3b", "GQA, hybrid with 36 linear layers"),
    ],
)
def test_physics_models_attention_kinds_are_told_apart(name: str, attention: str) -> None:
    assert named_model(name).attention == attention


@pytest.mark.parametrize(
    "name", ["meta-llama/Meta-Llama-3-70B-Instruct", "Llama-3-70B", "llama_3_70b", "meta-llama/Meta-Llama-3-70B"]
)
def test_physics_models_the_ways_people_write_a_name_find_the_model(name: str) -> None:
    assert named_model(name).name == "llama-3-70b"


def test_physics_models_an_unknown_name_lists_the_nearest() -> None:
    with pytest.raises(
        BadInput, match=r"model llama-3-17b: not in the table; the nearest are llama-3-70b, .*config"
    ):
        named_model("llama-3-17b")


def test_physics_models_all_missing_fields_are_named_at_once() -> None:
    values = {k: v for k, v in LLAMA.items() if k not in ("num_hidden_layers", "vocab_size")}
    with pytest.raises(BadInput, match=r"^my/config.json: no num_hidden_layers or n_layer .*, no vocab_size or "):
        from_config(values, "my/config.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_attention_heads": 7}, r"num_attention_heads = 7; expected a divisor of the hidden size 64"),
        ({"num_key_value_heads": 3}, r"num_key_value_heads = 3; expected a divisor of the 8 attention heads"),
        ({"vocab_size": "many"}, r"vocab_size = 'many'; expected a whole number"),
        ({"num_hidden_layers": 0}, r"num_hidden_layers = 0; expected a positive whole number"),
        ({"layer_types": ["full_attention"]}, r"layer_types = '1 entries'; expected one for each of the 4 layers"),
        ({"layer_types": ["wavy"] * 4}, r"layer_types = 'wavy'; expected one of full_attention"),
        ({"layer_types": ["linear_attention"] * 4}, r"expected linear_num_value_heads"),
        ({"num_local_experts": 8}, r"no num_experts_per_tok"),
        ({"intermediate_size": None}, r"no intermediate_size"),
    ],
)
def test_physics_models_a_value_that_cannot_be_used_is_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        from_config({**LLAMA, **change}, "config.json")


def test_physics_models_a_multimodal_config_is_read_by_its_text_part() -> None:
    assert from_config({"model_type": "seer", "text_config": LLAMA}, "a").layers == from_config(LLAMA, "a").layers


def test_physics_models_older_field_names_say_the_same() -> None:
    older = {"model_type": "llama", "n_embd": 64, "n_layer": 4, "n_head": 8, "num_kv_heads": 2, "n_inner": 128}
    model = from_config({**older, "vocab_size": 100}, "a")
    assert model.layers == from_config(LLAMA, "a").layers


def test_physics_models_a_window_switched_off_makes_no_sliding_layers() -> None:
    windowed = {**LLAMA, "sliding_window": 16}
    assert {layer.kind for layer in from_config(windowed, "a").layers} == {"sliding"}
    assert {layer.kind for layer in from_config({**windowed, "use_sliding_window": False}, "a").layers} == {"full"}


def test_physics_models_layer_types_decide_layer_by_layer() -> None:
    kinds = ["full_attention", "sliding_attention"] * 2
    model = from_config({**LLAMA, "sliding_window": 16, "layer_types": kinds}, "a")
    assert [layer.window_tokens for layer in model.layers] == [None, 16, None, 16]


def test_physics_models_the_stored_quantisation_is_kept() -> None:
    config = json.loads(json.dumps({**LLAMA, "quantization_config": {"quant_method": "awq", "bits": 4}}))
    assert from_config(config, "a").stored_type == "awq"


def test_physics_models_experts_used_are_the_active_part() -> None:
    model = named_model("mixtral-8x7b")
    assert 12.5e9 < model.active_linear + model.head_parameters < 13.0e9  # published: 12.9 billion a token
    assert touched_share(1, model.experts, model.experts_used) == pytest.approx(2 / 8)
    assert touched_share(100, model.experts, model.experts_used) == pytest.approx(1, abs=1e-6)


def test_physics_models_a_file_that_is_no_gguf_is_refused() -> None:
    from ragclinic.physics.models import from_gguf

    with pytest.raises(BadInput, match=r"^x.gguf: begins with b'PK\\x03\\x04'; expected GGUF"):
        from_gguf(BytesIO(b"PK\x03\x04rest"), "x.gguf")
