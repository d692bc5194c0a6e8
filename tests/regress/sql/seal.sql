-- Public IDs: keys, and what they seal.
SELECT flake_create_key('usr', 'twitter');
SELECT flake_seal(7, 'usr') ~ '^usr_[0-7][0-9a-hjkmnp-tv-z]{25}$' AS text, flake_seal(7, 'usr') = flake_seal(7, 'usr') AS again,
       flake_seal_uuid(7, 'usr')::text ~ '^.{14}8.{4}[89ab]' AS version_8;
SELECT count(DISTINCT sealed), bool_and(flake_unseal(sealed, 'usr') = id) AS opened, bool_and(flake_unseal(uuid, 'usr') = id) AS uuid_opened,
       bool_and(flake_unseal(uuid::text, 'usr') = id) AS spelling_opened, bool_and(flake_unseal_or_error(sealed, 'usr') = id) AS without_error
FROM (SELECT id, flake_seal(id, 'usr') AS sealed, flake_seal_uuid(id, 'usr') AS uuid
      FROM (SELECT hashint8extended(g, 1) >> (g % 64) AS id FROM generate_series(1, 2000) g) ids) s;

-- IDs that another implementation has sealed, by keys that are made elsewhere; and texts that it refuses.
CREATE TEMPORARY TABLE vectors (secret text, id bigint, uuid uuid, text text);
\getenv srcdir PG_ABS_SRCDIR
\set load '\\copy vectors FROM ''' :srcdir '/../vectors/seal.csv'' WITH (FORMAT csv, HEADER)'
:load
SELECT flake_import_key('vectors' || repeat('x', n::int), 'twitter', decode(secret, 'hex'))
FROM (SELECT secret, row_number() OVER (ORDER BY secret) FROM vectors GROUP BY secret) s(secret, n);
SELECT count(*) FILTER (WHERE v.id IS NOT NULL) AS sealed, count(*) FILTER (WHERE v.id IS NULL) AS refused,
       bool_and(flake_seal_uuid(v.id, k.name) = v.uuid AND flake_seal(v.id, k.name) = k.name || '_' || v.text) AS same,
       bool_and(flake_unseal(v.uuid, k.name) IS NOT DISTINCT FROM v.id) AS same_opened
FROM vectors v JOIN (SELECT secret, 'vectors' || repeat('x', row_number() OVER (ORDER BY secret)::int) FROM vectors GROUP BY secret)
    k(secret, name) USING (secret);

-- A text that was not sealed with a key is NULL, or an error.
SELECT flake_seal(42, 'vectorsx') AS sealed \gset
SELECT wrong, flake_unseal(wrong, 'vectorsx') FROM (VALUES (''), ('42'), ('vectorsx_'), (upper(:'sealed')), (:'sealed' || '0'),
    (' ' || :'sealed'), (replace(:'sealed', 'vectorsx_', '')), (replace(:'sealed', 'vectorsx', 'vectorsxx')),
    ('00000000-0000-0000-0000-000000000000'), ('€')) v(wrong);
SELECT flake_unseal(:'sealed', 'vectorsx'), flake_unseal(:'sealed', 'usr') AS of_another_key,
       flake_unseal(flake_seal_uuid(42, 'vectorsx'), 'usr') AS uuid_of_another_key;
SELECT flake_unseal_or_error('vectorsx_75ddtqrrhdhagam34yy93n037h', 'vectorsx');
SELECT flake_unseal_or_error('00000000-0000-8000-8000-000000000000'::uuid, 'vectorsx');

-- An index serves a public ID that is a constant or a parameter.
CREATE TABLE users (id bigint PRIMARY KEY, name text);
INSERT INTO users SELECT g, 'user ' || g FROM generate_series(1, 10000) g;
ANALYZE users;
SELECT flake_seal(4711, 'vectorsx') AS sealed \gset
EXPLAIN (COSTS OFF) SELECT name FROM users WHERE id = flake_unseal(:'sealed', 'vectorsx');
SELECT name FROM users WHERE id = flake_unseal(:'sealed', 'vectorsx');
PREPARE by_public_id (text) AS SELECT name FROM users WHERE id = flake_unseal($1, 'vectorsx');
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE by_public_id(:'sealed');
EXECUTE by_public_id(:'sealed');
EXECUTE by_public_id('vectorsx_75ddtqrrhdhagam34yy93n037h');

-- Rotation: IDs keep their public names.
SELECT flake_seal(999, 'vectorsx') AS below, flake_seal(1000, 'vectorsx') AS above \gset
SELECT flake_rotate_key('vectorsx', 1000, true);
SELECT flake_seal(999, 'vectorsx') = :'below' AS below_kept, flake_seal(1000, 'vectorsx') <> :'above' AS above_changed,
       flake_unseal(:'below', 'vectorsx') AS below, flake_unseal(:'above', 'vectorsx') AS by_the_secret_of_others,
       flake_unseal(flake_seal(1000, 'vectorsx'), 'vectorsx') AS above;
SELECT flake_rotate_key('vectorsx', 1000, true);
SELECT flake_rotate_key('vectorsx', 2000, true), flake_rotate_key('vectorsx', 3000, true);
SELECT count(DISTINCT flake_seal(id, 'vectorsx')), bool_and(flake_unseal(flake_seal(id, 'vectorsx'), 'vectorsx') = id)
FROM unnest(ARRAY[-1, 999, 1000, 1999, 2000, 2999, 3000, 9223372036854775807]) id;
SELECT flake_rotate_key('vectorsx', 4000, true);
BEGIN;
SELECT flake_rotate_key('usr', 1000, true);
SELECT flake_seal(1000, 'usr') AS rolled_back \gset
ROLLBACK;
SELECT flake_unseal(:'rolled_back', 'usr') AS rolled_back;

-- The secrets are none of the key's public options, which have their fingerprints.
SELECT srvname, regexp_replace(unnest(srvoptions), '[0-9a-f]{16}$', '…') AS shown
FROM pg_foreign_server JOIN pg_foreign_data_wrapper w ON w.oid = srvfdw WHERE fdwname = 'flake_key' ORDER BY 1, 2;

-- Mistakes.
SELECT flake_create_key('usr', 'twitter');
SELECT flake_import_key('other', 'twitter', decode(min(secret), 'hex')) FROM vectors;
SELECT flake_rotate_key('usr', -9223372036854775808, true);
CREATE SERVER mistake FOREIGN DATA WRAPPER flake_key;
CREATE SERVER mistake FOREIGN DATA WRAPPER flake_key OPTIONS (key2 'aes128-uuid8 -9223372036854775808 0011223344556677');
ALTER USER MAPPING FOR PUBLIC SERVER usr OPTIONS (SET key1 'no secret');
CREATE USER MAPPING FOR CURRENT_USER SERVER usr OPTIONS (key1 '00112233445566778899aabbccddeeff');
SELECT flake_unseal(flake_seal(5, 'usr'), 'usr') AS own_mapping_changes_nothing;
CREATE FOREIGN TABLE mistake (id bigint) SERVER usr;
-- The mapping is dropped with the key. The NOTICE names the role that runs this.
BEGIN;
SET LOCAL client_min_messages = warning;
SELECT flake_drop_key('usr');
ROLLBACK;
DROP USER MAPPING FOR CURRENT_USER SERVER usr;

-- Layouts and keys share their names. No call replaces a layout by a key.
SELECT flake_create_layout('taken', '{"like": "si"}');
SELECT flake_create_key('taken', 'twitter');
SELECT flake_drop_layout('taken');

-- A secret that is missing or another one is noticed, and can be put back.
ALTER USER MAPPING FOR PUBLIC SERVER vectorsxx OPTIONS (SET key1 '00112233445566778899aabbccddeeff');
SELECT flake_seal(1, 'vectorsxx');
SELECT flake_import_key('vectorsxx', 'twitter', decode(secret, 'hex')) FROM (SELECT DISTINCT secret FROM vectors ORDER BY 1 OFFSET 1 LIMIT 1) s;
DROP USER MAPPING FOR PUBLIC SERVER vectorsxx;
SELECT flake_seal(1, 'vectorsxx');
SELECT name, ok, detail, hint FROM flake_check() WHERE name = 'keys';
SELECT flake_import_key('vectorsxx', 'twitter', decode(secret, 'hex')) FROM (SELECT DISTINCT secret FROM vectors ORDER BY 1 OFFSET 1 LIMIT 1) s;
SELECT name, ok, detail, hint FROM flake_check() WHERE name = 'keys';

-- A key that something names is not dropped.
CREATE VIEW sealed AS SELECT flake_seal(id, 'usr') AS id, name FROM users;
SELECT flake_drop_key('usr');
DROP VIEW sealed;
SELECT flake_drop_key(name) FROM (VALUES ('usr'), ('vectorsx'), ('vectorsxx'), ('vectorsxxx')) k(name);
SELECT flake_drop_key('usr');
DROP TABLE users;
