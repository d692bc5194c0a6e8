//! A conversion changes two things for clients: they can choose keys, and currval and lastval know no key any more.

use pgrx::spi::{SpiClient, SpiError};

use super::key::{Key, NOT_READY, unconvertible};
use super::statements::{names, qualified, rows};
use crate::error::listed;
use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::report::warning;

/// The columns of table $1 that a client can give, other than the key $2.
const OTHERS: &str = "
    SELECT ARRAY[pg_catalog.string_agg(pg_catalog.quote_ident(attname), ', ' ORDER BY attnum)] FROM pg_catalog.pg_attribute
    WHERE attrelid OPERATOR(pg_catalog.=) $1 AND attnum OPERATOR(pg_catalog.>) 0 AND attnum OPERATOR(pg_catalog.<>) $2
      AND NOT attisdropped AND attgenerated OPERATOR(pg_catalog.=) ''::\"char\"";

/// The sequences that belong to column $2 of table $1, or that its default calls, if they have been called. PostgreSQL does not record
/// by whom and when, and not at all who calls currval and lastval. To read a sequence takes a lock until the end of the transaction:
/// OFFSET 0 leaves out the others before.
const SEQUENCES: &str = "
    SELECT ARRAY[own.seqrelid::pg_catalog.regclass::pg_catalog.text] FROM (
        SELECT s.seqrelid FROM pg_catalog.pg_sequence s WHERE EXISTS (
            SELECT FROM pg_catalog.pg_depend d LEFT JOIN pg_catalog.pg_attrdef e
              ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass AND d.objid OPERATOR(pg_catalog.=) e.oid
            WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND (
                d.refobjid OPERATOR(pg_catalog.=) s.seqrelid AND e.adrelid OPERATOR(pg_catalog.=) $1 AND e.adnum OPERATOR(pg_catalog.=) $2
                OR d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
                   AND d.objid OPERATOR(pg_catalog.=) s.seqrelid AND d.refobjid OPERATOR(pg_catalog.=) $1
                   AND d.refobjsubid OPERATOR(pg_catalog.=) $2)) OFFSET 0) own
    WHERE CASE WHEN pg_catalog.has_sequence_privilege(own.seqrelid, 'SELECT, USAGE')
               THEN pg_catalog.pg_sequence_last_value(own.seqrelid) IS NOT NULL END";

/// Raises an error if PostgreSQL keeps clients from choosing keys, which a default does not.
pub fn require_choosable(client: &mut SpiClient<'_>, key: &Key) -> Result<(), SpiError> {
    if !key.is_always {
        return Ok(());
    }
    let columns = names(qualified(|| rows(client, OTHERS, &[key.oid.into(), key.number.into()]))?).concat();
    let (table, column) = (to_utf8_lossy(&key.table), to_utf8_lossy(&key.column));
    let grant =
        if columns.is_empty() { "no INSERT".to_owned() } else { format!("GRANT INSERT ({columns}) ON {table} TO …") };
    unconvertible(&table, NOT_READY)
        .detail(format!(
            "Its key {column} is GENERATED ALWAYS. With a default instead, clients could choose keys, even in the far future."
        ))
        .hint(format!(
            "Let roles insert the other columns only: REVOKE INSERT ON {table} FROM …, and {grant}. Then pass force => true."
        ))
        .raise()
}

/// Warns if clients may have asked a sequence which key it has made last.
pub fn warn_of_sequences(client: &mut SpiClient<'_>, key: &Key) -> Result<(), SpiError> {
    let sequences = names(qualified(|| rows(client, SEQUENCES, &[key.oid.into(), key.number.into()]))?);
    if !sequences.is_empty() {
        let table = to_utf8_lossy(&key.table);
        warning(
            format!("currval and lastval will return no keys of {table} any more"),
            Some(&format!(
                "Its keys have come from {}; clients that ask it after an INSERT get other numbers.",
                listed(sequences.iter(), "others")
            )),
            "Let clients read keys by RETURNING. To find the others, see docs/how-to/convert.md.",
        );
    }
    Ok(())
}
