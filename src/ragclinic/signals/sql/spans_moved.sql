-- Spans on the common clock, server spans and all of their trace under the client's call.
SELECT x.* REPLACE (
    coalesce(t.new_trace, x.trace_id) AS trace_id,
    coalesce(m.parent_id, x.parent_id) AS parent_id,
    x.start_ns + coalesce(o.add_ns, 0) AS start_ns,
    x.end_ns + coalesce(o.add_ns, 0) AS end_ns)
FROM spans x
LEFT JOIN offsets o ON x.source = o.source AND coalesce(x.service, '') = o.service
LEFT JOIN moves m ON x.trace_id = m.old_trace AND x.span_id = m.span_id
LEFT JOIN (SELECT old_trace, any_value(new_trace) AS new_trace FROM moves GROUP BY old_trace) t
    ON x.trace_id = t.old_trace;
