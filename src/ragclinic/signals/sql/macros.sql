-- What the attributes of a span, one JSON object with sorted keys, tell of an LLM call.
CREATE MACRO is_server(attributes) AS contains(attributes, '"gen_ai.latency.e2e"');
CREATE MACRO is_call(attributes) AS
    regexp_matches(attributes, '"gen_ai.operation.name":"(chat|text_completion|generate_content)"')
    OR contains(attributes, '"openinference.span.kind":"LLM"')
    OR regexp_matches(attributes, '"llm.request.type":"(chat|completion)"')
    OR contains(attributes, '"langfuse.observation.type":"generation"');
CREATE MACRO prompt_tokens(attributes) AS coalesce(
    json_extract_string(attributes, '$."gen_ai.usage.input_tokens"'),
    json_extract_string(attributes, '$."gen_ai.usage.prompt_tokens"'),
    json_extract_string(attributes, '$."llm.token_count.prompt"'));
CREATE MACRO output_tokens(attributes) AS coalesce(
    json_extract_string(attributes, '$."gen_ai.usage.output_tokens"'),
    json_extract_string(attributes, '$."gen_ai.usage.completion_tokens"'),
    json_extract_string(attributes, '$."llm.token_count.completion"'));
CREATE MACRO response_id(attributes) AS coalesce(
    json_extract_string(attributes, '$."gen_ai.response.id"'),
    json_extract_string(attributes, '$."llm.response.id"'),
    json_extract_string(attributes, '$."gen_ai.request.id"'));
-- What a server's span may stick out of its client's once clocks are aligned: scheduling, rounding to milliseconds.
CREATE MACRO slack_ns() AS 20000000;
-- Offsets of clocks, filled once they are known; where a span belongs instead.
CREATE TEMP TABLE offsets (source INTEGER, service VARCHAR, add_ns BIGINT);
CREATE TEMP TABLE moves (old_trace VARCHAR, span_id VARCHAR, new_trace VARCHAR, parent_id VARCHAR);
