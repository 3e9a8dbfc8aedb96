SELECT * FROM chunks QUALIFY row_number() OVER (PARTITION BY trace_id, span_id, rank ORDER BY source) = 1;
