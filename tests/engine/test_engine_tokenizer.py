"""The tokenizer read out of a GGUF file cuts as llama.cpp does, and loads fast the second time."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gguf
import pytest

from ragclinic.engine.tokenizer import gguf_tokenizer
from ragclinic.engine.weights import builtin_model
from ragclinic.errors import BadInput, ClinicError

MERGES = ["h e", "l l", "he ll", "hell o", "Ġ w", "1 2"]
SPECIAL = "<|im_start|>"


def byte_names() -> list[str]:
    """GPT-2's printable name of each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    names = {byte: chr(byte) for byte in printable}
    names.update({byte: chr(256 + i) for i, byte in enumerate(b for b in range(256) if b not in names)})
    return [names[byte] for byte in range(256)]


def make_gguf(path: Path, pre: str = "smollm", model: str = "gpt2") -> Path:
    """A GGUF file with a vocabulary of bytes and a few merges, and no tensors."""
    tokens = [SPECIAL, *byte_names(), *("".join(merge.split()) for merge in MERGES)]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([3, *[1] * (len(tokens) - 1)])
    writer.add_token_merges(MERGES)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def pieces(path: Path, text: str, cache: Path) -> list[str]:
    """The text cut where the tokens begin."""
    tokenizer = gguf_tokenizer(path, {"RAGCLINIC_CACHE": str(cache)})
    return [text[start:end] for start, end in tokenizer.offsets(text)]


@pytest.mark.parametrize(
    ("pre", "expected"),
    [
        ("smollm", ["hello", " w", "o", " ", "1", "2"]),
        ("gpt-2", ["hello", " w", "o", " ", "12"]),
        ("llama-bpe", ["hello", " w", "o", " ", "12"]),
        ("qwen2", ["hello", " w", "o", " ", "1", "2"]),
    ],
)
def test_each_family_cuts_words_and_digits_in_its_own_way(pre: str, expected: list[str], tmp_path: Path) -> None:
    assert pieces(make_gguf(tmp_path / "m.gguf", pre), "hello wo 12", tmp_path) == expected


def test_special_tokens_in_the_text_are_found_as_a_server_finds_them(tmp_path: Path) -> None:
    tokenizer = gguf_tokenizer(make_gguf(tmp_path / "m.gguf"), {"RAGCLINIC_CACHE": str(tmp_path)})
    assert tokenizer.encode(f"{SPECIAL}hello")[0] == 0
    assert len(tokenizer.encode(f"{SPECIAL}hello")) == 2


def test_tokens_inside_a_character_share_its_offsets(tmp_path: Path) -> None:
    assert set(pieces(make_gguf(tmp_path / "m.gguf"), "你", tmp_path)) == {"你"}


def test_the_vocabulary_is_kept_and_a_damaged_copy_is_made_anew(tmp_path: Path) -> None:
    path, environ = make_gguf(tmp_path / "m.gguf"), {"RAGCLINIC_CACHE": str(tmp_path / "cache")}
    first = gguf_tokenizer(path, environ)
    kept = next((tmp_path / "cache" / "tokenizers").iterdir())
    assert gguf_tokenizer(path, environ).identity == first.identity
    kept.write_text(kept.read_text()[:100])
    assert gguf_tokenizer(path, environ).encode("hello") == first.encode("hello")


def test_a_cache_folder_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    path = make_gguf(tmp_path / "m.gguf")
    assert gguf_tokenizer(path, {"RAGCLINIC_CACHE": str(path)}).encode("hello")


def test_two_vocabularies_have_two_identities(tmp_path: Path) -> None:
    environ = {"RAGCLINIC_CACHE": str(tmp_path)}
    one = gguf_tokenizer(make_gguf(tmp_path / "a.gguf", "smollm"), environ)
    other = gguf_tokenizer(make_gguf(tmp_path / "b.gguf", "gpt-2"), environ)
    assert one.identity != other.identity


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path, "No such file or directory; expected a GGUF model; check llm.model"),
        (lambda path: path.write_bytes(b"PK\x03\x04 zip"), r"begins with b'PK\\x03\\x04'; expected a GGUF model"),
        (lambda path: path.write_bytes(b"GGUF\x03\0\0\0"), "GGUF header cannot be read"),
        (lambda path: make_gguf(path, "tekken"), "tokenizer gpt2/tekken; expected gpt2 with one of"),
        (lambda path: make_gguf(path, "default", "llama"), "tokenizer llama/default; expected gpt2"),
    ],
    ids=["absent", "other file", "cut off", "other family", "other kind"],
)
def test_a_file_that_cannot_be_used_is_named_with_what_to_do(make: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    make(path)
    with pytest.raises(BadInput, match=rf"m\.gguf: {message}"):
        gguf_tokenizer(path, {"RAGCLINIC_CACHE": str(tmp_path / "cache")})


TOKENIZE = """
import json, os, sys, time, httpx, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.port, params.warmup = sys.argv[1], 256, 0, False
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.verbosity = -1
server = xllamacpp.Server(params)
client = httpx.Client(base_url=server.listening_address, timeout=30)
while client.get("/health").status_code != 200:
    time.sleep(0.1)
texts = json.load(sys.stdin)
print(json.dumps([client.post("/tokenize", json={"content": text}).json()["tokens"] for text in texts]))
sys.stdout.flush()
os._exit(0)
"""
TEXTS = [
    "It's 12,345.67 o'clock; we'RE late.\n\n  def f(x):\n\t\treturn x[0]**2\r\n",
    "你好，世界！大模型推理在 2026 年有 128k 上下文。漢字かなカナ 한국어",
    "<|im_start|>user\nhi<|im_end|>\n<|endoftext|> <|im_start|",
    "👨‍👩‍👧‍👦 🇨🇳 👍🏽 e\u0301 ﬁ \u00a0\u3000\u200b ½ ² ２３ ไทย हिन्दी العربية",
    " " * 40 + "\n" * 9 + "x" * 200 + "\x00\x1c\u2028end",
]


@pytest.mark.slow
def test_it_cuts_exactly_as_llama_cpp_does() -> None:
    try:
        model = builtin_model()
    except ClinicError as error:
        pytest.skip(f"the embedded model is not to be had here: {error}")
    done = subprocess.run(
        [sys.executable, "-c", TOKENIZE, str(model)],
        input=json.dumps(TEXTS),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    tokenizer = gguf_tokenizer(model)
    assert [tokenizer.encode(text) for text in TEXTS] == json.loads(done.stdout.splitlines()[-1])
    start = time.perf_counter()
    gguf_tokenizer(model)
    assert time.perf_counter() - start < 2  # 0.2 s here; 5 s without the kept vocabulary
