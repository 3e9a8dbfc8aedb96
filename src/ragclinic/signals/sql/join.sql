-- Finds the client of each server span whose parent is nowhere in the recording.
CREATE TEMP TABLE lost AS
    SELECT s.*, s.start_ns + coalesce(o.add_ns, 0) AS from_ns, s.end_ns + coalesce(o.add_ns, 0) AS to_ns
    FROM servers s LEFT JOIN offsets o ON s.source = o.source AND s.service = o.service
    WHERE NOT EXISTS (SELECT 1 FROM spans p WHERE p.trace_id = s.trace_id AND p.span_id = s.parent_id);
CREATE TEMP TABLE calls AS
    SELECT c.*, c.start_ns + coalesce(o.add_ns, 0) - slack_ns() AS from_ns,
           c.end_ns + coalesce(o.add_ns, 0) + slack_ns() AS to_ns
    FROM clients c LEFT JOIN offsets o ON c.source = o.source AND c.service = o.service;
-- The same request id.
INSERT INTO moves
    SELECT l.trace_id, l.span_id, j.trace_id, j.parent_id
    FROM lost l JOIN same_request j ON l.trace_id = j.old_trace AND l.span_id = j.span_id;
-- The same trace: the shortest call around it.
INSERT INTO moves
    SELECT l.trace_id, l.span_id, c.trace_id, c.span_id
    FROM lost l JOIN calls c ON l.trace_id = c.trace_id AND l.from_ns >= c.from_ns AND l.to_ns <= c.to_ns
    WHERE NOT EXISTS (SELECT 1 FROM moves m WHERE m.old_trace = l.trace_id AND m.span_id = l.span_id)
    QUALIFY row_number() OVER (PARTITION BY l.trace_id, l.span_id ORDER BY c.end_ns - c.start_ns) = 1;
-- Another trace: the only call around it with the same counts, around which there is no other such server span.
INSERT INTO moves
    SELECT old_trace, span_id, new_trace, parent_id FROM (
        SELECT l.trace_id AS old_trace, l.span_id AS span_id, c.trace_id AS new_trace, c.span_id AS parent_id,
               count(*) OVER (PARTITION BY l.trace_id, l.span_id) AS calls_of_server,
               count(*) OVER (PARTITION BY c.trace_id, c.span_id) AS servers_of_call
        FROM lost l
        JOIN calls c ON l.prompt = c.prompt AND l.answer = c.answer AND l.from_ns >= c.from_ns AND l.to_ns <= c.to_ns
        WHERE l.trace_id <> c.trace_id
          AND NOT EXISTS (SELECT 1 FROM moves m WHERE m.old_trace = l.trace_id AND m.span_id = l.span_id)
          AND NOT EXISTS (SELECT 1 FROM moves m WHERE m.new_trace = c.trace_id AND m.parent_id = c.span_id))
    WHERE calls_of_server = 1 AND servers_of_call = 1;
