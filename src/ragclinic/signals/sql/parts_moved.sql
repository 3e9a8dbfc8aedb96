SELECT x.* REPLACE (coalesce(t.new_trace, x.trace_id) AS trace_id)
FROM parts x
LEFT JOIN (SELECT old_trace, any_value(new_trace) AS new_trace FROM moves GROUP BY old_trace) t
    ON x.trace_id = t.old_trace;
