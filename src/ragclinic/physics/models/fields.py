"""Reads fields of a configuration under any of the names they are given, and says all that are missing at once."""

from collections.abc import Mapping

from ragclinic.errors import BadInput

NAMES: dict[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"),
    "head_dim": ("head_dim", "kv_channels", "attention_head_dim"),
    "vocabulary": ("vocab_size", "padded_vocab_size"),
    "intermediate": ("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim"),
    "window": ("max_position_embeddings", "n_positions", "seq_length", "max_seq_len", "n_ctx"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "experts_used": ("num_experts_per_tok", "num_experts_per_token", "moe_topk"),
    "expert_intermediate": ("moe_intermediate_size", "expert_ffn_hidden_size"),
}
"""Our word for a field -> the names that Hugging Face configurations use, the commonest first."""


class Fields:
    """One configuration; `number` and `need` look a field up by our word or by its own name."""

    def __init__(self, values: Mapping[str, object], where: str) -> None:
        self._values = values
        self._where = where

    def need(self, *words: str) -> tuple[int, ...]:
        """The whole numbers of these fields, by our word or by their own name.

        Raises:
            BadInput: some are absent or no positive whole numbers; the message names all of the absent ones.
        """
        missing = [" or ".join(NAMES.get(w, (w,))) for w in words if self.number(w) is None]
        if missing:
            raise BadInput(
                f"{self._where}: no {', no '.join(missing)}; expected the config.json of a causal language model; "
                "add the field or give another file"
            )
        found = tuple(self.number(w) or 0 for w in words)
        for word, value in zip(words, found, strict=True):
            if value < 1:
                raise self.bad(NAMES.get(word, (word,))[0], value, "a positive whole number")
        return found

    def number(self, word: str) -> int | None:
        """The whole number of one field, or None where it is absent or null."""
        for name in NAMES.get(word, (word,)):
            value = self._values.get(name)
            if value is None:
                continue
            fraction = isinstance(value, float) and not value.is_integer()  # infinite and not-a-number too
            if isinstance(value, bool) or not isinstance(value, int | float) or fraction:
                raise self.bad(name, value, "a whole number")
            return int(value)
        return None

    def flag(self, name: str, default: bool = False) -> bool:
        """A truth value."""
        value = self._values.get(name)
        return default if value is None else bool(value)

    def text(self, name: str) -> str:
        """A text, empty where it is absent."""
        value = self._values.get(name)
        return value if isinstance(value, str) else ""

    def names(self, name: str) -> list[str] | None:
        """A list of texts, or None where it is absent."""
        value = self._values.get(name)
        return [str(v) for v in value] if isinstance(value, list) else None

    def numbers(self, name: str) -> list[int]:
        """A list of whole numbers, empty where it is absent."""
        value = self._values.get(name)
        return [int(v) for v in value] if isinstance(value, list) else []

    def mapping(self, name: str) -> Mapping[str, object]:
        """A nested table, empty where it is absent."""
        value = self._values.get(name)
        return value if isinstance(value, Mapping) else {}

    def bad(self, name: str, value: object, expected: str) -> BadInput:
        """The error for a field whose value cannot be used."""
        return BadInput(f"{self._where}: {name} = {value!r}; expected {expected}; mend the configuration")
