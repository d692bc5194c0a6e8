-- The built-in layouts.
SET timezone = 'UTC';
SET datestyle = ISO;
SET intervalstyle = postgres;
SELECT name, epoch, tick, bits, sequence, ids_per_tick, ends_at, sortable_until, source FROM flake_layouts \gx
SELECT name, field->>'name' AS field, field->>'bits' AS bits, field->>'role' AS role,
       NULLIF(field - '{name,bits,role}'::text[], '{}') AS more
FROM flake_layouts, jsonb_array_elements(fields) WITH ORDINALITY AS f(field, place)
ORDER BY name, place;
-- A field's bits add up to the layout's.
SELECT name FROM flake_layouts
WHERE bits <> (SELECT sum((field->>'bits')::int) FROM jsonb_array_elements(fields) field);
