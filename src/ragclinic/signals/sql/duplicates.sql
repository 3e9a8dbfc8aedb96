-- How often a span is there once more, and the first such.
SELECT coalesce(sum(n - 1), 0) FROM (SELECT count(*) AS n FROM spans GROUP BY hash(trace_id, span_id));
