-- IDs of the original implementations: both ways between ID, parts and text (tests/vectors).
SET timezone = 'UTC';
SET datestyle = ISO;
SET intervalstyle = postgres;
\getenv srcdir PG_ABS_SRCDIR
CREATE TEMP TABLE vectors (layout text, epoch_ms bigint, unix_us bigint, fields text, id bigint, text text);
\set load '\\copy vectors FROM ''' :srcdir '/../vectors/twitter.csv'' WITH (FORMAT csv, HEADER)'
:load
\set load '\\copy vectors FROM ''' :srcdir '/../vectors/si.csv'' WITH (FORMAT csv, HEADER)'
:load
\set load '\\copy vectors FROM ''' :srcdir '/../vectors/uniqueid.csv'' WITH (FORMAT csv, HEADER)'
:load
\set load '\\copy vectors FROM ''' :srcdir '/../vectors/base64id.csv'' WITH (FORMAT csv, HEADER)'
:load
\set load '\\copy vectors FROM ''' :srcdir '/../vectors/relatives.csv'' WITH (FORMAT csv, HEADER)'
:load
\set load '\\copy vectors FROM ''' :srcdir '/../vectors/presets.csv'' WITH (FORMAT csv, HEADER)'
:load
\set load '\\copy vectors FROM ''' :srcdir '/../vectors/published.csv'' WITH (FORMAT csv, HEADER)'
:load
\set definitions_file :srcdir '/../vectors/layouts.json'
\set definitions `cat :'definitions_file'`

-- Every layout that is not built in, or has another epoch there, becomes a custom one of this transaction.
BEGIN;
CREATE TEMP TABLE wanted AS
SELECT DISTINCT layout, epoch_ms, replace(layout, '/', '-') || '.' || epoch_ms AS name
FROM vectors v
WHERE NOT EXISTS (SELECT FROM flake_layouts l
                  WHERE l.name = v.layout AND l.epoch = to_timestamp(0) + epoch_ms * interval '1 ms');
-- Many of these layouts can make the same IDs as another one, so flake_create_layout warns.
SET client_min_messages = error;
SELECT count(flake_create_layout(name,
    CASE WHEN layout IN (SELECT l.name FROM flake_layouts l) THEN jsonb_build_object('like', layout)
         ELSE :'definitions'::jsonb->layout END
    || jsonb_build_object('epoch', to_timestamp(0) + epoch_ms * interval '1 ms'))) AS custom_layouts
FROM wanted;
RESET client_min_messages;

CREATE TEMP VIEW checked AS
SELECT v.layout AS family, COALESCE(w.name, v.layout) AS name, v.id, v.text,
       -- In two parts: an interval is multiplied as a floating-point number.
       to_timestamp(0) + unix_us / 86400000000 * interval '1 day' + unix_us % 86400000000 * interval '1 us' AS created_at,
       (SELECT jsonb_object_agg(split_part(pair, '=', 1), split_part(pair, '=', 2)::bigint)
        FROM string_to_table(v.fields, ' ') pair) AS numbers,
       flake_decode(id, COALESCE(w.name, v.layout)) AS parts
FROM vectors v LEFT JOIN wanted w USING (layout, epoch_ms);

SELECT split_part(family, '/', 1) AS family, count(*),
       count(*) FILTER (WHERE (parts).created_at = created_at) AS time_in_parts,
       count(*) FILTER (WHERE flake_timestamp(id, name) = created_at) AS time,
       count(*) FILTER (WHERE (parts).fields - 'timestamp' = numbers) AS fields,
       count(*) FILTER (WHERE (parts).layout = name) AS name,
       count(*) FILTER (WHERE flake_make(created_at, numbers, name) = id) AS made,
       count(*) FILTER (WHERE flake_make((parts).created_at, (parts).fields, name) = id) AS made_again,
       count(*) FILTER (WHERE flake_to_text(id, name) = COALESCE(text, flake_to_text(id, name))) AS encoded,
       count(*) FILTER (WHERE flake_from_text(flake_to_text(id, name), name) = id) AS parsed
FROM checked GROUP BY 1 ORDER BY 1;

-- Whole worker numbers, by hand.
SELECT split_part(family, '/', 1) AS family, count(*), count(*) FILTER (WHERE (parts).worker = CASE family
            WHEN 'uniqueid' THEN (numbers->>'cluster')::bigint * 64 + (numbers->>'generator')::bigint
            WHEN 'uniqueid_v3' THEN (numbers->>'cluster')::bigint * 2048 + (numbers->>'generator')::bigint
            WHEN 'discord' THEN (numbers->>'worker')::bigint * 32 + (numbers->>'process')::bigint
            ELSE (numbers->>'datacenter')::bigint * 32 + (numbers->>'worker')::bigint END) AS worker
FROM checked WHERE family IN ('twitter', 'snowflake', 'uniqueid', 'uniqueid_v3', 'discord') GROUP BY 1 ORDER BY 1;

-- The smallest and the largest ID of the tick enclose each of them, where IDs are in the order of time.
SELECT split_part(family, '/', 1) AS family, count(*),
       count(*) FILTER (WHERE id BETWEEN flake_min(created_at, c.name) AND flake_max(created_at, c.name)) AS enclosed,
       count(*) FILTER (WHERE flake_timestamp(flake_min(created_at, c.name), c.name) = created_at) AS min_in_tick,
       count(*) FILTER (WHERE flake_timestamp(flake_max(created_at, c.name), c.name) = created_at) AS max_in_tick,
       count(*) FILTER (WHERE flake_during(id, tstzrange(created_at, created_at, '[]'), c.name)) AS during
FROM checked c JOIN flake_layouts l ON l.name = c.name AND created_at <= sortable_until
GROUP BY 1 ORDER BY 1;
ROLLBACK;

-- Published IDs.
SELECT flake_timestamp(20) AS second_of_the_epoch, flake_timestamp(1541815603606036480) AS encyclopedia,
       flake_timestamp(1050118621198921728) AS documentation;
SELECT (flake_decode(132271570944274432, 'snowflake')).*;
SELECT (flake_decode(-3795148059625652224, 'uniqueid')).*;
SELECT (flake_decode(175928847299117063, 'discord')).*;
