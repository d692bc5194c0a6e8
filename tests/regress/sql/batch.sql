-- Many IDs by one call.
SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE flake_timestamp(id) BETWEEN now() - interval '1 ms' AND clock_timestamp())
FROM flake_batch('twitter', 100000) id;

-- If the layout's sequence restarts, the IDs increase, even beside other calls.
SELECT count(*) AS disorder
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before FROM flake_batch('snowflake', 50000) WITH ORDINALITY b(id, n)) s
WHERE id <= before;
SELECT count(DISTINCT id) FROM (
    SELECT flake_batch('twitter', 3000) AS id UNION ALL SELECT flake_next('twitter') FROM generate_series(1, 3000)
    UNION ALL SELECT b FROM generate_series(1, 10) n, LATERAL flake_batch('twitter', n * 10) b) s;

-- Every layout that makes IDs.
SELECT name, count(DISTINCT b) FROM flake_layouts, LATERAL flake_batch(name, 20) b WHERE generates AND ends_at > now()
GROUP BY name ORDER BY name;

-- Counts.
SELECT flake_batch('twitter', 0);
SELECT count(*) FROM flake_batch('twitter', 1), flake_batch('twitter', 255) a, flake_batch('twitter', 256) b
WHERE a IS NOT NULL;
SELECT count(*) FROM flake_batch('twitter', 257);
SELECT count(*) FROM flake_batch(NULL, 5);
SELECT count(*) FROM flake_batch('twitter', NULL);

-- A batch that is not taken to its end, several at once, and into a table.
SELECT count(*) FROM (SELECT flake_batch('twitter', 1000000) LIMIT 10) s;
SELECT count(a), count(b), count(DISTINCT a) + count(DISTINCT b) AS different
FROM (SELECT flake_batch('twitter', 700) AS a, flake_batch('twitter', 300) AS b) s;
CREATE TEMP TABLE batched (id bigint PRIMARY KEY, item text);
INSERT INTO batched SELECT flake_batch('twitter', 1000), 'tea';
INSERT INTO batched SELECT id, 'rice' FROM flake_batch('twitter', 1000) id;
SELECT count(*) FROM batched;

-- A batch is refused where one value is expected.
SELECT CASE WHEN flake_batch('twitter', 2) > 0 THEN 1 END;
UPDATE batched SET item = 'salt' WHERE id = flake_batch('twitter', 1);
