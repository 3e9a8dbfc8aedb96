SELECT * FROM parts QUALIFY row_number() OVER (PARTITION BY trace_id, span_id, position ORDER BY source) = 1;
