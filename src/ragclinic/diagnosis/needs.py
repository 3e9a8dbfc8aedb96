"""The signals that causes need, each with the one line that turns it on. A cause names them from here.

The lines name public attributes, so that any tracer can follow them; our engine records all of them by itself.
"""

from ragclinic.diagnosis.say import say
from ragclinic.diagnosis.types import Signal

GENERATION = Signal(
    "prefill and decode time",
    say(
        'on the LLM call\'s span set gen_ai.operation.name = "chat" and gen_ai.response.time_to_first_chunk '
        "(seconds)",
        '在调用 LLM 的跨度上设置 gen_ai.operation.name = "chat" 和 gen_ai.response.time_to_first_chunk（秒）',
    ),
)
QUEUE = Signal(
    "queue time",
    say(
        "start vLLM with --otlp-traces-endpoint (gen_ai.latency.time_in_queue), or add a span with "
        'ragclinic.stage = "queue"',
        "启动 vLLM 时加 --otlp-traces-endpoint（gen_ai.latency.time_in_queue），"
        '或者加一个 ragclinic.stage = "queue" 的跨度',
    ),
)
LOADS = Signal(
    "model loads",
    say(
        'add a span with ragclinic.stage = "load" around loading (Ollama: load_duration of the response), '
        "or sample memory",
        '在加载模型处加一个 ragclinic.stage = "load" 的跨度（Ollama：响应里的 load_duration），或者采样显存',
    ),
)
PROMPT_TOKENS = Signal(
    "prompt tokens",
    say(
        "set gen_ai.usage.input_tokens from usage.prompt_tokens of the response",
        "把响应里的 usage.prompt_tokens 写入 gen_ai.usage.input_tokens",
    ),
)
CACHED_TOKENS = Signal(
    "cached prompt tokens",
    say(
        "set gen_ai.usage.cache_read.input_tokens from usage.prompt_tokens_details.cached_tokens of the response",
        "把响应里的 usage.prompt_tokens_details.cached_tokens 写入 gen_ai.usage.cache_read.input_tokens",
    ),
)
OUTPUT_TOKENS = Signal(
    "output tokens",
    say(
        "set gen_ai.usage.output_tokens from usage.completion_tokens of the response",
        "把响应里的 usage.completion_tokens 写入 gen_ai.usage.output_tokens",
    ),
)
WINDOW = Signal(
    "window size",
    say(
        "set ragclinic.window_tokens on the LLM call's span (vLLM: max_model_len, llama.cpp: n_ctx of a slot)",
        "在调用 LLM 的跨度上设置 ragclinic.window_tokens（vLLM：max_model_len，llama.cpp：每个槽的 n_ctx）",
    ),
)
CHUNKS = Signal(
    "retrieved chunks",
    say(
        "set retrieval.documents.{{i}}.document.content on the retrieval span (OpenInference), or record with "
        'recording.content = "hashed"',
        "在检索的跨度上设置 retrieval.documents.{{i}}.document.content（OpenInference），"
        '或者用 recording.content = "hashed" 记录',
    ),
)
CHUNK_PLACES = Signal(
    "chunk offsets",
    say(
        "put doc, start and end of each chunk into retrieval.documents.{{i}}.document.metadata",
        "把每块的 doc、start、end 写入 retrieval.documents.{{i}}.document.metadata",
    ),
)
SCORES = Signal(
    "chunk scores",
    say(
        "set retrieval.documents.{{i}}.document.score on the retrieval or rerank span",
        "在检索或重排的跨度上设置 retrieval.documents.{{i}}.document.score",
    ),
)
PROMPT_PARTS = Signal(
    "prompt parts",
    say(
        "record gen_ai.system_instructions and gen_ai.input.messages, or record with our engine and "
        'recording.content = "hashed"',
        "记录 gen_ai.system_instructions 和 gen_ai.input.messages，"
        '或者用本引擎以 recording.content = "hashed" 记录',
    ),
)
SESSIONS = Signal(
    "sessions",
    say(
        "set session.id (or gen_ai.conversation.id) on the request's span",
        "在请求的跨度上设置 session.id（或 gen_ai.conversation.id）",
    ),
)
QUESTIONS = Signal(
    "questions",
    say(
        'set input.value on the request\'s span, or record with recording.content = "hashed"',
        '在请求的跨度上设置 input.value，或者用 recording.content = "hashed" 记录',
    ),
)
FIRST_BYTE = Signal(
    "first byte at the user",
    say(
        "set ragclinic.time_to_first_byte (seconds) on the request's span, by the client's clock",
        "按客户端的时钟，在请求的跨度上设置 ragclinic.time_to_first_byte（秒）",
    ),
)
