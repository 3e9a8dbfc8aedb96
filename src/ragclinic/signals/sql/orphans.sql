-- Spans that name a parent which is nowhere.
SELECT count(*) FROM spans
WHERE parent_id IS NOT NULL AND hash(trace_id, parent_id) NOT IN (SELECT hash(trace_id, span_id) FROM spans);
