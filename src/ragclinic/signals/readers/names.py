"""What an attribute of a span is for: the names that carry documents, prompts, first tokens; all generations.

OpenInference 0.1.42, OpenTelemetry GenAI up to genai v0.1.0, OpenLLMetry semconv-ai 0.5.1 and its older `llm.*`
names, Langfuse SDK 5.2, vLLM and SGLang servers. Unknown names are kept as they are.
"""

import re
from functools import lru_cache
from typing import Literal, NamedTuple

Use = Literal["keep", "drop", "document", "message"]


class Role(NamedTuple):
    """The use of a name; for documents and messages which one, in which list, and which field of it."""

    use: Use
    list: int = 0
    number: int = 0
    field: str = ""


KEEP = Role("keep")
DROP = Role("drop")
RETRIEVED, RERANKED = 0, 1

_DOCUMENT = re.compile(
    r"(retrieval\.documents|reranker\.output_documents)\.(\d{1,5})\.document\.(id|content|score|metadata)"
)
_MESSAGES = (
    re.compile(r"llm\.input_messages\.(\d{1,5})\.message\.(role|content)"),
    re.compile(r"llm\.input_messages\.(\d{1,5})\.message\.contents\.\d{1,5}\.message_content\.(text)"),
    re.compile(r"gen_ai\.prompt\.(\d{1,5})\.(role|content)"),
    re.compile(r"llm\.prompts\.(\d{1,5})\.(role|content)"),
)
# Bulky, and of no use to a diagnosis: vectors, tool schemas, what is a chunk or a part already.
_DROP = (
    "embedding.embeddings.",
    "gen_ai.prompt.",
    "gen_ai.tool.definitions",
    "llm.input_messages.",
    "llm.output_messages.",
    "llm.prompts.",
    "llm.tools.",
    "reranker.input_documents.",
    "reranker.output_documents.",
    "retrieval.documents.",
)

SYSTEM_TEXT = "gen_ai.system_instructions.text"
"""System instructions spelt out by `expand`: a message before the first, at index -1."""
FIRST_CHUNK_S = "gen_ai.response.time_to_first_chunk"
FIRST_TOKEN_EVENTS = frozenset(
    {
        "First Token Stream Event",  # OpenInference: openai, llama-index, mistralai
        "gen_ai.content.completion.chunk",  # OpenLLMetry >= 0.5
        "llm.content.completion.chunk",  # OpenLLMetry before
    }
)
RESULT_EVENTS = frozenset({"db.query.result", "db.search.result"})
DETAIL_EVENTS = frozenset({"gen_ai.content.prompt", "gen_ai.client.inference.operation.details"})


@lru_cache(maxsize=8192)
def role_of(name: str) -> Role:
    """What the attribute of this name is for."""
    if match := _DOCUMENT.fullmatch(name):
        which = RERANKED if match[1].startswith("reranker") else RETRIEVED
        return Role("document", which, int(match[2]), match[3])
    if name == SYSTEM_TEXT:
        return Role("message", 0, -1, "content")
    for pattern in _MESSAGES:
        if match := pattern.fullmatch(name):
            return Role("message", 0, int(match[1]), "content" if match[2] == "text" else match[2])
    return DROP if name.startswith(_DROP) else KEEP


_NUMBER = re.compile(
    r"(gen_ai|llm|db|server|http|reranker)\..*(token|latency|time_|top_k|score|count|port|status_code|size)"
)


def is_number_name(name: str) -> bool:
    """Whether an attribute of this name is a number, for formats (Zipkin) that hold texts only."""
    return bool(_NUMBER.match(name)) and not name.endswith((".id", "_id"))
