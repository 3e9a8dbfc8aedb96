-- Samples of the sources whose offset was set by hand: nothing in them tells it.
SELECT x.* REPLACE (x.time_ns + coalesce(o.add_ns, 0) AS time_ns)
FROM samples x LEFT JOIN offsets o ON x.source = o.source;
