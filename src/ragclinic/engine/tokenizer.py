"""The LLM's own tokenizer, read out of its GGUF file: counts here are the counts the server will bill.

Reading a vocabulary through the `gguf` package takes seconds (every token is one small read), so that the result
is kept as `tokenizer.json` in the cache folder and loads in a tenth of a second from then on.
"""

import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ragclinic.engine.weights import cache_folder
from ragclinic.errors import BadInput, MissingExtra

if TYPE_CHECKING:
    import tokenizers

_CACHE_VERSION = 1
_CONTROL = 3
_USER_DEFINED = 4
"""Token types of GGUF that a server finds in the text before it cuts the rest into words."""

_WORDS_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_WORDS_CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,%d}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PRE_TOKENIZERS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell"), (r"\p{N}", _WORDS_GPT2)),
    **dict.fromkeys(("gpt-2", "olmo"), (_WORDS_GPT2,)),
    **dict.fromkeys(("llama-bpe", "dbrx", "smaug-bpe"), (_WORDS_CL100K % 3,)),
    **dict.fromkeys(("qwen2", "stablelm2"), (_WORDS_CL100K % 1,)),
}
"""How text is cut into words before the merges, by the name in `tokenizer.ggml.pre`."""

_WHOLE_WORDS_FIRST = frozenset({"llama-bpe"})
"""Families that take a word found in the vocabulary as it is, whatever the merges say."""


class Tokenizer(Protocol):
    """Text to the tokens of one LLM."""

    @property
    def identity(self) -> str:
        """Which vocabulary this is; two tokenizers of the same identity cut alike."""

    def encode(self, text: str) -> list[int]:
        """The token ids, without any that a chat template would add."""

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """For each token the characters it comes from, `(start, end)`; tokens inside one character share it."""


class BpeTokenizer:
    """A byte-level BPE tokenizer."""

    def __init__(self, identity: str, inner: "tokenizers.Tokenizer") -> None:
        self.identity = identity
        self._inner = inner

    def encode(self, text: str) -> list[int]:
        """The token ids of the text."""
        return self._inner.encode(text, add_special_tokens=False).ids

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """The characters each token comes from."""
        return self._inner.encode(text, add_special_tokens=False).offsets


def gguf_tokenizer(model: Path, environ: Mapping[str, str] = os.environ) -> BpeTokenizer:
    """The tokenizer of a GGUF model, cutting exactly as llama.cpp does.

    Writes `tokenizers/<key>.json` into the cache folder the first time a model is seen.

    Raises:
        BadInput: the file is not there, is not GGUF, or has a kind of tokenizer that is not known here.
        MissingExtra: `gguf` or `tokenizers` is not installed.
    """
    try:
        import tokenizers
    except ImportError as error:
        raise MissingExtra("tokenizers", "local") from error
    try:
        state = model.stat()
        with model.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise BadInput(f"{model}: {error.strerror or error}; expected a GGUF model; check llm.model") from error
    if magic != b"GGUF":
        raise BadInput(f"{model}: begins with {magic!r}; expected a GGUF model; check llm.model")
    key = f"{_CACHE_VERSION}|{model.resolve()}|{state.st_size}|{state.st_mtime_ns}"
    cached = cache_folder(environ) / "tokenizers" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
    try:
        inner = tokenizers.Tokenizer.from_str(cached.read_text("utf-8"))
    except Exception:  # noqa: BLE001  absent, cut off or of another version: tokenizers raises a bare Exception
        inner = _build(model)
        with suppress(OSError):  # a cache that cannot be written costs time, nothing else
            _keep(cached, inner.to_str())
    vocabulary = hashlib.sha256(inner.to_str().encode()).hexdigest()[:8]
    return BpeTokenizer(f"gguf-bpe-{inner.get_vocab_size()}-{vocabulary}", inner)


def _build(model: Path) -> "tokenizers.Tokenizer":
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

    fields = _fields(model)
    kind, pre = fields.get("tokenizer.ggml.model"), fields.get("tokenizer.ggml.pre", "default")
    if kind != "gpt2" or pre not in PRE_TOKENIZERS:
        raise BadInput(
            f"{model}: tokenizer {kind}/{pre}; expected gpt2 with one of {', '.join(sorted(PRE_TOKENIZERS))}; "
            "use another GGUF, or serve this one and set llm.url"
        )
    tokens: Sequence[str] = fields["tokenizer.ggml.tokens"]
    types: Sequence[int] = fields.get("tokenizer.ggml.token_type", [1] * len(tokens))
    merges = [tuple(merge.split(" ", 1)) for merge in fields["tokenizer.ggml.merges"]]
    inner = Tokenizer(
        models.BPE(
            vocab={token: i for i, token in enumerate(tokens)},
            merges=[(left, right) for left, right in merges],
            ignore_merges=pre in _WHOLE_WORDS_FIRST,
        )
    )
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            *(pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in PRE_TOKENIZERS[pre]),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, kind_of in zip(tokens, types, strict=True)
            if kind_of in (_CONTROL, _USER_DEFINED)
        ]
    )
    return inner


def _fields(model: Path) -> dict[str, Any]:
    """The header's fields that describe the tokenizer."""
    try:
        from gguf import GGUFReader
    except ImportError as error:
        raise MissingExtra("gguf", "local") from error
    try:
        reader = GGUFReader(model)
        return {
            name: field.contents() for name, field in reader.fields.items() if name.startswith("tokenizer.ggml.")
        }
    except (ValueError, IndexError, KeyError, OSError) as error:
        raise BadInput(
            f"{model}: GGUF header cannot be read ({error}); expected a whole GGUF file; download it again"
        ) from error


def _keep(path: Path, text: str) -> None:
    """Writes the cache file; whoever comes second writes the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(temporary).replace(path)
