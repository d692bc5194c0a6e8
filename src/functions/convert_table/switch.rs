//! The statement that switches the default of a key, and the one that brings the old one back.

use flake_core::Sequence;
use pgrx::spi::{SpiClient, SpiError};

use super::key::Key;
use super::statements::{qualified, rows, run};
use crate::postgres::encoding::to_utf8_lossy;

/// The sequence of an identity column, $1 and $2, and its options.
const SEQUENCE: &str = "
    SELECT ARRAY[s.seqrelid::pg_catalog.regclass::pg_catalog.text,
        pg_catalog.concat('GENERATED ', CASE a.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END, ' AS IDENTITY (SEQUENCE NAME ',
            s.seqrelid::pg_catalog.regclass, ' START WITH ', s.seqstart, ' INCREMENT BY ', s.seqincrement, ' MINVALUE ', s.seqmin,
            ' MAXVALUE ', s.seqmax, ' CACHE ', s.seqcache, CASE WHEN s.seqcycle THEN ' CYCLE' ELSE ' NO CYCLE' END, ' RESTART WITH '),
        s.seqincrement::pg_catalog.text, s.seqmin::pg_catalog.text, s.seqmax::pg_catalog.text, s.seqcycle::pg_catalog.text]
    FROM pg_catalog.pg_attribute a
    JOIN pg_catalog.pg_depend d ON d.refobjid OPERATOR(pg_catalog.=) a.attrelid
      AND d.refobjsubid OPERATOR(pg_catalog.=) a.attnum::pg_catalog.int4 AND d.deptype OPERATOR(pg_catalog.=) 'i'
      AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
      AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
    JOIN pg_catalog.pg_sequence s ON s.seqrelid OPERATOR(pg_catalog.=) d.objid
    WHERE a.attrelid OPERATOR(pg_catalog.=) $1 AND a.attnum OPERATOR(pg_catalog.=) $2";

/// Gives a key another default; returns the statement that brings the old one back.
pub fn switch(client: &mut SpiClient<'_>, key: &Key, default: &[u8]) -> Result<Vec<u8>, SpiError> {
    let column = [b"ALTER COLUMN ", &key.column[..]].concat();
    let alter = [b"ALTER TABLE ", &key.table[..], b" ", &column].concat();
    let (undo, drop) = if key.is_identity {
        let identity = identity(client, key)?;
        (
            [&alter, &b" DROP DEFAULT, "[..], &column, b" ADD ", &identity].concat(),
            [b" DROP IDENTITY, ", &column[..]].concat(),
        )
    } else if let Some(old) = &key.default {
        ([&alter, &b" SET DEFAULT "[..], old].concat(), Vec::new())
    } else {
        ([&alter, &b" DROP DEFAULT"[..]].concat(), Vec::new())
    };
    run(client, [&alter, &drop, &b" SET DEFAULT "[..], default].concat())?;
    Ok(undo)
}

/// The clause that makes an identity column of the same kind, whose sequence goes on where the present one is.
fn identity(client: &mut SpiClient<'_>, key: &Key) -> Result<Vec<u8>, SpiError> {
    let options = qualified(|| rows(client, SEQUENCE, &[key.oid.into(), key.number.into()]))?;
    let options = options.first().map_or(&[][..], |row| row);
    let [Some(name), Some(clause), numbers @ ..] = options else { pgrx::error!("identity column without a sequence") };
    let state = [&b"SELECT ARRAY[last_value::pg_catalog.text, is_called::pg_catalog.text] FROM "[..], name].concat();
    let state = rows(client, &state, &[])?;
    let text = |text: &Option<Vec<u8>>| to_utf8_lossy(text.as_deref().unwrap_or_default()).into_owned();
    let numbers: Vec<_> = state.iter().flatten().chain(numbers).map(text).collect();
    let number = |n: usize| numbers.get(n).and_then(|text| text.parse().ok()).unwrap_or_default();
    let flag = |n: usize| numbers.get(n).is_some_and(|text| text == "true");
    let sequence = Sequence {
        last: number(0),
        is_called: flag(1),
        increment: number(2),
        min: number(3),
        max: number(4),
        cycles: flag(5),
    };
    Ok([clause, sequence.next().to_string().as_bytes(), b")"].concat())
}
