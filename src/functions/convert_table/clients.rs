//! A conversion lets clients choose keys.

use pgrx::spi::{SpiClient, SpiError};

use super::key::{Key, NOT_READY, unconvertible};
use super::statements::{names, qualified, rows};
use crate::postgres::encoding::to_utf8_lossy;

/// The columns of table $1 that a client can give, other than the key $2.
const OTHERS: &str = "
    SELECT ARRAY[pg_catalog.string_agg(pg_catalog.quote_ident(attname), ', ' ORDER BY attnum)] FROM pg_catalog.pg_attribute
    WHERE attrelid OPERATOR(pg_catalog.=) $1 AND attnum OPERATOR(pg_catalog.>) 0 AND attnum OPERATOR(pg_catalog.<>) $2
      AND NOT attisdropped AND attgenerated OPERATOR(pg_catalog.=) ''::\"char\"";

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
