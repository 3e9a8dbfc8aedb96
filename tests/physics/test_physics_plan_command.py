"""`ragclinic plan`: its JSON keys, its errors, its traces, and its terminal form."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from ragclinic.cli.plan import plan
from ragclinic.errors import BadInput

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
ASKED = [
    "--model",
    "llama-3-70b",
    "--device",
    "h100-80g",
    "--context",
    "8192",
    "--users",
    "64",
    "--slo-ms",
    "2000",
]
FIT = ["--model", "llama-3-8b", "--device", "a100-80g", "--context", "4096", "--users", "20"]


def run(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(plan)
    return CliRunner().invoke(app, list(arguments))


def test_physics_plan_command_prints_the_published_keys() -> None:
    result = run(*ASKED, "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert {"weights_bytes", "kv_bytes_per_token", "kv_bytes", "activations_bytes", "free_bytes"} <= set(
        found["memory"]
    )
    assert found["fits"] is False
    assert found["max_users"] == 0
    assert set(found["ttft_ms"]) == set(found["tpot_ms"]) == {"p50", "p95"}
    assert found["breaks_at"]["requests_per_s"] == 0
    assert found["breaks_at"]["why"].startswith("the weights: 141.1 GB")
    assert found["memory"]["kv_bytes_per_token"] == 327_680
    assert found["cheapest"][0]["options"]


def test_physics_plan_command_memory_adds_up() -> None:
    memory = json.loads(run(*FIT, "--json").stdout)["memory"]
    parts = memory["weights_bytes"] + memory["kv_bytes"] + memory["activations_bytes"] + memory["free_bytes"]
    assert parts == memory["usable_bytes"]


def test_physics_plan_command_shows_a_bar_and_a_verdict() -> None:
    out = run(*FIT).stdout
    assert "llama-3-8b on a100-80g" in out
    assert "[█" in out
    assert "weights 15.0 GiB" in out
    assert "The objective is kept." in out
    assert "breaks at" in out


def test_physics_plan_command_marks_what_does_not_fit() -> None:
    out = " ".join(run(*ASKED).stdout.split())
    assert "GiB more than the 71.7 usable" in out
    assert "It fails at once: the weights" in out
    assert "kept with" in out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--model", "llama-4-71b"], "the nearest are"),
        (["--device", "h1"], "device h1: not in the table; the nearest are"),
        (["--kv-type", "q3"], "KV type q3: not known; the nearest are"),
        (["--weights", "awk"], "weights awk: not known; the nearest are awq"),
        (["--server", "vlm"], "the nearest is vllm"),
        (["--router", "prefix"], "the nearest is prefix-aware"),
        (["--model", "nowhere/config.json"], "nowhere/config.json: No such file or directory; expected a config"),
        (["--workload", "nowhere.csv"], "nowhere.csv: No such file or directory; expected a trace"),
    ],
)
def test_physics_plan_command_bad_input_is_one_clear_line(change: list[str], message: str) -> None:
    result = run(*FIT, *change)
    assert isinstance(result.exception, BadInput)
    assert message in str(result.exception)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("config.json", "{", "not JSON"),
        ("config.json", "[]", "a JSON list; expected an object"),
        ("config.json", "{}", "no num_hidden_layers"),
        ("m.gguf", "GGML", "expected GGUF"),
    ],
)
def test_physics_plan_command_a_bad_model_file_is_named(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    result = run("--model", str(tmp_path / name), "--device", "h100")
    assert str(result.exception).startswith(str(tmp_path / name))
    assert message in str(result.exception)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n", "0 requests; expected at least 2"),
        ("t.csv", "a,b\n1,2\n", ":2: KeyError"),
        ("t.jsonl", "{}\n", ":1: "),
        ("t.jsonl", "nonsense\n", ":1: not JSON"),
        ("t.jsonl", "[1]\n", ":1: [1]; expected one JSON object"),
    ],
)
def test_physics_plan_command_a_bad_trace_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    result = run(*FIT, "--workload", str(tmp_path / name))
    assert isinstance(result.exception, BadInput)
    assert f"{tmp_path / name}" in str(result.exception)
    assert message in str(result.exception)


def test_physics_plan_command_takes_a_config_file_with_its_stored_quantisation(tmp_path: Path) -> None:
    config = {
        "model_type": "llama",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "vocab_size": 128256,
        "quantization_config": {"quant_method": "awq"},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = json.loads(run("--model", str(tmp_path), "--device", "l4", "--context", "2048", "--json").stdout)
    assert found["weights"] == "awq"
    assert found["memory"]["weights_bytes"] == pytest.approx(5.73e9, rel=0.001)


def test_physics_plan_command_takes_a_written_trace(tmp_path: Path) -> None:
    rows = [
        {"timestamp": i * 500, "input_length": 1100, "output_length": 9, "hash_ids": [1, 2]} for i in range(30)
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    found = json.loads(run(*FIT, "--workload", str(tmp_path / "t.jsonl"), "--json").stdout)
    assert found["requests_per_s"] == pytest.approx(2.0)
    assert found["cached_share"] == pytest.approx(29 * 1024 / (30 * 1100))
    fewer = json.loads(run(*FIT, "--workload", str(tmp_path / "t.jsonl"), "--requests", "2", "--json").stdout)
    assert fewer["cached_share"] == pytest.approx(1024 / 2200)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the public traces are not beside this checkout")
@pytest.mark.parametrize("trace", ["azure/code.csv", "mooncake/conversation_trace.jsonl"])
def test_physics_plan_command_runs_the_public_traces(trace: str) -> None:
    found = json.loads(
        run(*FIT, "--replicas", "4", "--workload", str(SHARED / trace), "--requests", "400", "--json").stdout
    )
    assert found["ttft_ms"]["p95"] > 0
    assert found["errors"] == 0
