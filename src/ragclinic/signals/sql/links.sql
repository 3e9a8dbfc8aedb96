-- Pairs of spans on two clocks of which one lies inside the other: children in parents, servers in their clients.
WITH pairs AS (
    SELECT p.source AS os, coalesce(p.service, '') AS oc, c.source AS cs, coalesce(c.service, '') AS cc,
           p.start_ns - c.start_ns AS low, p.end_ns - c.end_ns AS high
    FROM spans c JOIN spans p ON c.trace_id = p.trace_id AND c.parent_id = p.span_id
    WHERE p.source <> c.source OR p.service IS DISTINCT FROM c.service
    UNION ALL
    SELECT c.source, c.service, s.source, s.service, c.start_ns - s.start_ns, c.end_ns - s.end_ns
    FROM same_request j
    JOIN servers s ON s.trace_id = j.old_trace AND s.span_id = j.span_id
    JOIN clients c ON c.trace_id = j.trace_id AND c.span_id = j.parent_id
    WHERE c.source <> s.source OR c.service <> s.service)
SELECT os, oc, cs, cc, count(*), avg((low > 0 OR high < 0)::INT), median((low + high) / 2), median((high - low) / 2)
FROM pairs WHERE low <= high GROUP BY os, oc, cs, cc;
