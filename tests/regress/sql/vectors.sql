-- IDs that the original implementations made decode to their parts (tests/vectors).
SET timezone = 'UTC';
SET datestyle = ISO;
SET intervalstyle = postgres;
\getenv srcdir PG_ABS_SRCDIR
CREATE TEMP TABLE vectors (layout text, epoch_ms bigint, unix_ms bigint, fields text, id bigint);
\set load '\\copy vectors FROM ' :srcdir '/../vectors/twitter.csv WITH (FORMAT csv, HEADER)'
:load
\set load '\\copy vectors FROM ' :srcdir '/../vectors/si.csv WITH (FORMAT csv, HEADER)'
:load
\set load '\\copy vectors FROM ' :srcdir '/../vectors/uniqueid.csv WITH (FORMAT csv, HEADER)'
:load
\set load '\\copy vectors FROM ' :srcdir '/../vectors/base64id.csv WITH (FORMAT csv, HEADER)'
:load
\set load '\\copy vectors FROM ' :srcdir '/../vectors/published.csv WITH (FORMAT csv, HEADER)'
:load

-- A vector with another epoch than the layout's has the same bits for the same time since its epoch.
CREATE TEMP VIEW checked AS
SELECT v.*, l.sortable_until,
       to_timestamp(0) + unix_ms * interval '1 ms' - (to_timestamp(0) + epoch_ms * interval '1 ms') + l.epoch AS created_at,
       (SELECT jsonb_object_agg(split_part(pair, '=', 1), split_part(pair, '=', 2)::bigint)
        FROM string_to_table(v.fields, ' ') pair) AS numbers,
       flake_decode(id, layout) AS parts
FROM vectors v JOIN flake_layouts l ON l.name = v.layout;

SELECT layout, count(*),
       count(*) FILTER (WHERE (parts).created_at = created_at) AS time_in_parts,
       count(*) FILTER (WHERE flake_timestamp(id, layout) = created_at) AS time,
       count(*) FILTER (WHERE (parts).fields - 'timestamp' = numbers) AS fields,
       count(*) FILTER (WHERE (parts).sequence = (numbers->>'sequence')::bigint) AS sequence,
       count(*) FILTER (WHERE (parts).worker = CASE layout
            WHEN 'uniqueid' THEN (numbers->>'cluster')::bigint * 64 + (numbers->>'generator')::bigint
            WHEN 'si' THEN (numbers->>'machine')::bigint
            WHEN 'si_single' THEN 0
            WHEN 'base64id' THEN (numbers->>'worker')::bigint
            ELSE (numbers->>'datacenter')::bigint * 32 + (numbers->>'worker')::bigint END) AS worker,
       count(*) FILTER (WHERE (parts).layout = layout) AS name
FROM checked GROUP BY layout ORDER BY layout;

-- The smallest and the largest ID of the tick enclose each of them.
SELECT layout, count(*),
       count(*) FILTER (WHERE id BETWEEN flake_min(created_at, layout) AND flake_max(created_at, layout)) AS enclosed,
       count(*) FILTER (WHERE flake_timestamp(flake_min(created_at, layout), layout) = created_at) AS min_in_tick,
       count(*) FILTER (WHERE flake_timestamp(flake_max(created_at, layout), layout) = created_at) AS max_in_tick
FROM checked WHERE sortable_until IS NOT NULL GROUP BY layout ORDER BY layout;

-- Layouts that exist in the files only are tested in the core.
SELECT count(*) AS elsewhere FROM vectors WHERE layout NOT IN (SELECT name FROM flake_layouts);

-- Published IDs.
SELECT flake_timestamp(20) AS second_of_the_epoch, flake_timestamp(1541815603606036480) AS encyclopedia,
       flake_timestamp(1050118621198921728) AS documentation;
SELECT (flake_decode(132271570944274432, 'snowflake')).*;
SELECT (flake_decode(-3795148059625652224, 'uniqueid')).*;
