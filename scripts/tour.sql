-- The first page of a tutorial: `make run` shows it with its output.
\pset footer off
SET timezone = 'UTC';
\echo
\echo '1. Create the extension, and use it as the default of a primary key.'
\echo
\set ECHO queries

CREATE EXTENSION flake;

CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), item text);

INSERT INTO orders (item) VALUES ('tea'), ('rice'), ('salt') RETURNING *;

\set ECHO none
\echo
\echo '2. An ID knows when it was made, and where. Workers jump: sessions share them. Two fields of this layout make a worker.'
\echo
\set ECHO queries

SELECT item, flake_timestamp(id) AS created_at FROM orders;

SELECT (flake_decode(id)).* FROM orders LIMIT 1;

\set ECHO none
\echo One that the world knows:
\echo
\set ECHO queries

SELECT flake_timestamp(1541815603606036480);

\pset format unaligned
\pset tuples_only on
SELECT flake_explain(1541815603606036480);
\pset format aligned
\pset tuples_only off

\set ECHO none
\echo
\echo '3. So a range of time is a range of IDs, and the primary key finds it.'
\echo
\set ECHO queries

INSERT INTO orders (item) SELECT 'bread' FROM generate_series(1, 100000);

ANALYZE orders;

SELECT count(*) FROM orders WHERE flake_during(id, tstzrange(now() - interval '1 hour', NULL));

EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE flake_during(id, '[2026-01-01Z,2026-01-02Z)');

\set ECHO none
\echo
\echo '4. Other layouts; and what this session has made.'
\echo
\set ECHO queries

SELECT name, epoch::date, tick, bits, ids_per_tick, ends_at::date, text_form FROM flake_layouts LIMIT 8;

SELECT flake_next('si') AS exact_in_javascript, flake_to_text(flake_next('base64id'), 'base64id') AS ten_characters;

SELECT flake_create_layout('mine', '{"like": "twitter", "epoch": "2024-01-01T00:00:00Z", "text": "base62"}');

SELECT flake_to_text(flake_next('mine'), 'mine') AS mine;

\set ECHO none
\echo
