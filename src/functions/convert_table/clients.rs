//! Clients that give keys themselves: a conversion lets them choose keys, and a default does not reach those that ask a sequence.

use pgrx::spi::quote_literal;

use super::key::{Key, NOT_READY, Purpose};
use crate::functions::statements::{names, rows};
use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::report::warning;

/// The columns of table $1 that a client can give, other than the key $2.
const OTHERS: &str = "
    SELECT ARRAY[string_agg(quote_ident(attname), ', ' ORDER BY attnum)] FROM pg_attribute
    WHERE attrelid = $1 AND attnum > 0 AND attnum <> $2 AND NOT attisdropped AND attgenerated = ''::\"char\"";

/// The sequences that programs use for the key ($1, $2), by their names.
const SEQUENCES: &str = "
    SELECT ARRAY[s.oid::regclass::text] FROM pg_class t
    JOIN pg_attribute k ON k.attrelid = t.oid AND k.attnum = $2
    JOIN pg_class s ON s.relnamespace = t.relnamespace AND s.relkind = 'S'
      AND s.relname = ANY (ARRAY[concat(t.relname, '_seq'), concat(t.relname, '_', k.attname, '_seq')]::name[])
    WHERE t.oid = $1";

/// Warns if the key has no default, but a sequence of its name: programs such as SQLAlchemy and Hibernate ask it for each key.
pub fn warn_of_sequences(key: &Key) {
    if key.default.is_some() || key.is_identity {
        return;
    }
    for sequence in names(rows(SEQUENCES, &[key.oid.into(), key.number.into()])) {
        warning(
            format!("clients may give {} keys of sequence {sequence}", to_utf8_lossy(&key.table)),
            Some(
                "The key had no default, so clients chose each key. The default makes IDs only for those that stop doing so.",
            ),
            &format!(
                "If they ask the sequence, run flake_convert's \"undo\", and CALL flake_adopt({}, …) instead.",
                quote_literal(&sequence)
            ),
        );
    }
}

/// Raises an error if PostgreSQL keeps clients from choosing keys, which a default does not.
pub fn require_choosable(key: &Key) {
    if !key.is_always {
        return;
    }
    let columns = names(rows(OTHERS, &[key.oid.into(), key.number.into()])).concat();
    let (table, column) = (to_utf8_lossy(&key.table), to_utf8_lossy(&key.column));
    let grant =
        if columns.is_empty() { "no INSERT".to_owned() } else { format!("GRANT INSERT ({columns}) ON {table} TO …") };
    Purpose::Convert
        .refuse(&table, NOT_READY)
        .detail(format!(
            "Its key {column} is GENERATED ALWAYS. With a default instead, clients could choose keys, even in the far future."
        ))
        .hint(format!(
            "Let roles insert the other columns only: REVOKE INSERT ON {table} FROM …, and {grant}. Then pass force => true."
        ))
        .raise()
}
