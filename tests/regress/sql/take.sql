-- A consumer takes each row once, and its position moves with its transaction.
CREATE TABLE outbox (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), event text);
CREATE TABLE positions (name text, source regclass, last bigint, PRIMARY KEY (name, source));
INSERT INTO outbox (event) SELECT 'event ' || n FROM generate_series(1, 5) n;
INSERT INTO positions VALUES ('mailer', 'outbox'), ('auditor', 'outbox');
-- Until the tick of the last row is over.
DO $$ BEGIN PERFORM pg_sleep(0.01); END $$;

SELECT event FROM flake_take(NULL::outbox, 'positions', 'mailer', 2);
BEGIN;
SELECT event FROM flake_take(NULL::outbox, 'positions', 'mailer', 2);
ROLLBACK;
SELECT event FROM flake_take(NULL::outbox, 'positions', 'mailer', 100);
SELECT event FROM flake_take(NULL::outbox, 'positions', 'mailer', 100);
SELECT count(*) FROM flake_take(NULL::outbox, 'positions', 'auditor', 100);
SELECT name, last = (SELECT max(id) FROM outbox) AS has_all FROM positions ORDER BY name;

CREATE TABLE calls (id sno PRIMARY KEY DEFAULT sno_next(), number integer);
CREATE TABLE positions_of_calls (name text, source regclass, last sno, PRIMARY KEY (name, source));
INSERT INTO calls (number) SELECT generate_series(1, 3);
INSERT INTO positions_of_calls VALUES ('mailer', 'calls');
DO $$ BEGIN PERFORM pg_sleep(0.01); END $$;
SELECT number FROM flake_take(NULL::calls, 'positions_of_calls', 'mailer', 100);
SELECT number FROM flake_take(NULL::calls, 'positions_of_calls', 'mailer', 100);

-- Calls that are refused.
SELECT * FROM flake_take(NULL::outbox, 'positions', 'nobody', 100);
SELECT * FROM flake_take(NULL::calls, 'positions', 'mailer', 100);
SELECT * FROM flake_take(NULL::positions, 'positions', 'mailer', 100);
UPDATE positions SET last = 9223372036854775807;
SELECT * FROM flake_take(NULL::outbox, 'positions', 'mailer', 100);
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT * FROM flake_take(NULL::outbox, 'positions', 'auditor', 100);
ROLLBACK;
DROP TABLE outbox, positions, calls, positions_of_calls;
