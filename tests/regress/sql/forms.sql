-- IDs from parts and from text, and as a drawing.
SET timezone = 'UTC';
SET datestyle = ISO;

SELECT flake_make('2022-01-01Z', '{"datacenter": 2, "worker": 3}', 'snowflake');
SELECT flake_make('2010-11-04 01:42:54.657Z', '{}');
-- jsonb keeps the zeros of a fraction.
SELECT flake_make('2022-01-01Z', '{"worker": 3.00}') = flake_make('2022-01-01Z', '{"worker": 3}') AS is_whole;
SELECT flake_make('2022-01-01Z', '{"worker": 3.50}');
-- Each ID that can be decoded can be made again.
SELECT flake_make(d.created_at, d.fields, d.layout) FROM flake_decode(1541815603606036480) d;
SELECT flake_make(d.created_at, d.fields, d.layout) FROM flake_decode(600049445870637093, 'uniqueid_v3') d;

-- One ID in every text form.
SELECT l.name, text_form, flake_to_text(flake_make('2026-01-01Z', '{}', l.name), l.name)
FROM flake_layouts l WHERE text_form <> 'decimal' OR name = 'twitter' ORDER BY name COLLATE "C";
SELECT flake_from_text('1541815603606036480'), flake_from_text('cb54ecf284000000', 'uniqueid'), flake_from_text('AAAAAQAAAA', 'base64id'),
       flake_from_text('0awe5hzp3sktk', 'tsid'), flake_from_text('18446744073709551615', 'discord');

-- Texts of IDs sort like the IDs.
SELECT count(*) FROM (
    SELECT flake_to_text(id, 'tsid') COLLATE "C" AS text, lag(flake_to_text(id, 'tsid')) OVER (ORDER BY id) AS before
    FROM (SELECT flake_make('2026-01-01Z'::timestamptz + n * interval '1 hour', '{}', 'tsid') AS id FROM generate_series(1, 1000) n) s
) t WHERE text <= before;

\pset format unaligned
SELECT flake_explain(1541815603606036480);
SELECT flake_explain(-3795148059625652224, 'uniqueid');
SELECT flake_explain(4607219472785670, 'si');
\pset format aligned
-- No drawing is wider than a terminal.
SELECT max(length(line)) <= 100 AS fits
FROM flake_layouts l, string_to_table(flake_explain(flake_make(LEAST(ends_at, '2026-01-01Z'), '{}', l.name), l.name), E'\n') line;

