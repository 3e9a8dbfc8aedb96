SELECT source, span_id FROM spans
QUALIFY row_number() OVER (PARTITION BY trace_id, span_id ORDER BY source) = 2
ORDER BY source, span_id LIMIT 1;
