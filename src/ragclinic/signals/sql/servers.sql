-- The spans in which LLM servers tell their own times, the calls of their clients, and pairs with one request id.
CREATE TEMP TABLE servers AS
    SELECT source, coalesce(service, '') AS service, trace_id, span_id, parent_id, start_ns, end_ns,
           json_extract_string(attributes, '$."gen_ai.request.id"') AS request,
           prompt_tokens(attributes) AS prompt, output_tokens(attributes) AS answer
    FROM spans WHERE is_server(attributes);
CREATE TEMP TABLE clients AS
    SELECT source, coalesce(service, '') AS service, trace_id, span_id, parent_id, start_ns, end_ns,
           response_id(attributes) AS request, prompt_tokens(attributes) AS prompt, output_tokens(attributes) AS answer
    FROM spans WHERE (SELECT count(*) FROM servers) > 0 AND is_call(attributes) AND NOT is_server(attributes);
-- vLLM adds the number of the prompt to the id of a completion.
CREATE TEMP TABLE same_request AS
    SELECT s.trace_id AS old_trace, s.span_id AS span_id, c.trace_id AS trace_id, c.span_id AS parent_id
    FROM servers s JOIN clients c ON regexp_replace(s.request, '^(cmpl-.*)-0$', '\1') = c.request
    WHERE s.trace_id <> c.trace_id
    QUALIFY count(*) OVER (PARTITION BY s.trace_id, s.span_id) = 1;
