-- The built-in layouts.
SET timezone = 'UTC';
SET datestyle = ISO;
SET intervalstyle = postgres;
SELECT name, epoch, tick, bits, ids_per_tick, ends_at, sortable_until FROM flake_layouts;
-- Their fields, from the highest bits on, with what is not usual about them.
SELECT name, source, string_agg(concat_ws(' ', field->>'name', field->>'bits', NULLIF(field->>'role', field->>'name'),
                                          NULLIF(field - '{name,bits,role}'::text[], '{}')), ', ' ORDER BY place) AS fields
FROM flake_layouts, jsonb_array_elements(fields) WITH ORDINALITY AS f(field, place)
GROUP BY name, source ORDER BY name COLLATE "C";
-- A field's bits add up to the layout's.
SELECT name FROM flake_layouts
WHERE bits <> (SELECT sum((field->>'bits')::int) FROM jsonb_array_elements(fields) field);
