-- Clocks, and how many requests began on each.
SELECT source, coalesce(service, ''), count(*) FILTER (parent_id IS NULL) FROM spans GROUP BY ALL;
