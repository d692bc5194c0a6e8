//! The statement that switches the default of a key, and the statement that undoes this.

use pgrx::pg_sys;

use super::key::Key;
use crate::functions::statements::{rows, run};
use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::sequence_page;

/// The sequence of the identity column ($1, $2), and the beginning of a clause with its options.
const SEQUENCE: &str = "
    SELECT ARRAY[s.seqrelid::oid::text,
        concat('GENERATED ', CASE a.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END, ' AS IDENTITY (SEQUENCE NAME ',
            s.seqrelid::regclass, ' START WITH ', s.seqstart, ' INCREMENT BY ', s.seqincrement, ' MINVALUE ', s.seqmin,
            ' MAXVALUE ', s.seqmax, ' CACHE ', s.seqcache, CASE WHEN s.seqcycle THEN ' CYCLE' ELSE ' NO CYCLE' END, ' RESTART WITH ')]
    FROM pg_attribute a
    JOIN pg_depend d ON d.refobjid = a.attrelid AND d.refobjsubid = a.attnum::int4 AND d.deptype = 'i'
      AND d.refclassid = 'pg_class'::regclass
      AND d.classid = 'pg_class'::regclass
    JOIN pg_sequence s ON s.seqrelid = d.objid
    WHERE a.attrelid = $1 AND a.attnum = $2";

/// The next number of sequence $1 after the last value $2, which was handed out or not ($3), and the end of the clause. A sequence that
/// has ended repeats its last number.
const NEXT: &str = "
    SELECT ARRAY[concat(CASE WHEN NOT q.is_called THEN q.last_value WHEN n.next >= s.seqmin AND n.next <= s.seqmax THEN n.next
        WHEN NOT s.seqcycle THEN q.last_value
        WHEN s.seqincrement > 0 THEN s.seqmin ELSE s.seqmax END, ')')]
    FROM pg_sequence s JOIN (SELECT $2, $3) q(last_value, is_called) ON s.seqrelid = $1
    CROSS JOIN LATERAL (SELECT q.last_value::numeric + s.seqincrement) n(next)";

/// Gives a key another default. Returns the statement that restores the old one.
pub fn switch(key: &Key, default: &[u8]) -> Vec<u8> {
    let column = [b"ALTER COLUMN ", &key.column[..]].concat();
    let alter = [b"ALTER TABLE ", &key.table[..], b" ", &column].concat();
    let (undo, drop) = if key.is_identity {
        let identity = identity(key);
        (
            [&alter, &b" DROP DEFAULT, "[..], &column, b" ADD ", &identity].concat(),
            [b" DROP IDENTITY, ", &column[..]].concat(),
        )
    } else if let Some(old) = &key.default {
        ([&alter, &b" SET DEFAULT "[..], old].concat(), Vec::new())
    } else {
        ([&alter, &b" DROP DEFAULT"[..]].concat(), Vec::new())
    };
    run([&alter, &drop, &b" SET DEFAULT "[..], default].concat());
    undo
}

/// Returns the clause that makes the same kind of identity column, whose sequence continues where the current one is.
fn identity(key: &Key) -> Vec<u8> {
    let found = rows(SEQUENCE, &[key.oid.into(), key.number.into()]);
    let Some([Some(sequence), Some(clause)]) = found.first().map(|row| &row[..]) else {
        pgrx::error!("identity column without a sequence")
    };
    let sequence = pg_sys::Oid::from(to_utf8_lossy(sequence).parse::<u32>().unwrap_or_default());
    let Some((last_value, is_called)) = sequence_page::state(sequence) else {
        pgrx::error!("identity column without a sequence")
    };
    let next = rows(NEXT, &[sequence.into(), last_value.into(), is_called.into()]);
    let next = next.into_iter().flatten().flatten().flatten();
    clause.iter().copied().chain(next).collect()
}
