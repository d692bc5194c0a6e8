-- Sequences that return IDs: an extension of its own in the same package.
CREATE EXTENSION flake_sequences;
CREATE TABLE adopted (id bigserial PRIMARY KEY, v int);
INSERT INTO adopted (v) VALUES (1), (2);
SELECT column_name, sequence, kind, obstacle FROM flake_candidates WHERE relation = 'adopted'::regclass;
CALL flake_adopt('adopted', 'si');
INSERT INTO adopted (v) VALUES (3) RETURNING id > 1000000000000 AS is_id, lastval() = id AS is_last;
SELECT nextval('adopted_id_seq');
SELECT setval('adopted_id_seq', 1);
SELECT flake_sequences.currval('adopted_id_seq') = max(id) AS is_last FROM adopted;
SELECT fault FROM flake_sequence_faults WHERE kind = 'open';
CALL flake_release('adopted', next => 3);
INSERT INTO adopted (v) VALUES (4) RETURNING id;
DROP TABLE adopted;
DROP EXTENSION flake_sequences;
