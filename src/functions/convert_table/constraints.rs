//! Constraints of a key that would refuse its new IDs, so that no row could be inserted any more.

use pgrx::PgSqlErrorCode::*;

use super::key::{Key, MEMBERS};
use crate::functions::statements::{command, connected, qualified, rows};
use crate::postgres::encoding::{shortened, to_utf8_lossy};
use crate::postgres::role::act_as;

/// The CHECKs that concern the key alone, in all tables that are converted with it, and the CHECKs of its domain: their names and
/// expressions, the name by which they refer to the key, and the owner of the table or domain. Since version 18, some are not
/// enforced. A CHECK that calls a user's function is left out: the function may do anything, and may need the search_path of the
/// inserting role.
const CHECKS: &str = "
    , domains(oid) AS (
        SELECT atttypid FROM pg_catalog.pg_attribute WHERE attrelid OPERATOR(pg_catalog.=) $1 AND attnum OPERATOR(pg_catalog.=) $2
        UNION SELECT t.typbasetype FROM domains JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) domains.oid
        WHERE t.typbasetype OPERATOR(pg_catalog.<>) 0::pg_catalog.oid
    )
    SELECT DISTINCT ARRAY[c.conname::pg_catalog.text, pg_catalog.pg_get_expr(c.conbin, c.conrelid), n.name, n.owner::pg_catalog.text]
    FROM pg_catalog.pg_constraint c JOIN (
        SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, m.oid, ARRAY[m.attnum], pg_catalog.quote_ident(a.attname), r.relowner
        FROM members m JOIN pg_catalog.pg_class r ON r.oid OPERATOR(pg_catalog.=) m.oid
        JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) m.oid AND a.attnum OPERATOR(pg_catalog.=) m.attnum
        UNION ALL SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, d.oid, NULL, 'value', t.typowner
        FROM domains d JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) d.oid
    ) n(kind, oid, columns, name, owner)
      ON CASE WHEN n.columns IS NULL THEN c.contypid OPERATOR(pg_catalog.=) n.oid
              ELSE c.conrelid OPERATOR(pg_catalog.=) n.oid AND c.conkey OPERATOR(pg_catalog.=) n.columns END
    WHERE c.contype OPERATOR(pg_catalog.=) 'c'
      AND (pg_catalog.to_jsonb(c) OPERATOR(pg_catalog.->>) 'conenforced') IS DISTINCT FROM 'false'
      AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_depend u WHERE u.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_constraint'::pg_catalog.regclass
          AND u.objid OPERATOR(pg_catalog.=) c.oid AND u.deptype OPERATOR(pg_catalog.=) 'n'
          AND u.refclassid OPERATOR(pg_catalog.=) ANY (ARRAY['pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid,
              'pg_catalog.pg_operator'::pg_catalog.regclass, 'pg_catalog.pg_type'::pg_catalog.regclass]))";

/// How many bytes of an expression an error shows.
const LONGEST_SHOWN: usize = 1000;

/// Raises an error if a constraint does not hold for the first ID.
pub fn require_allowed(key: &Key, first: i64) {
    let query = format!("{MEMBERS}{CHECKS}");
    for row in rows(query, &[key.oid.into(), key.number.into()]) {
        let [Some(name), Some(expression), Some(of), Some(owner)] = &row[..] else { continue };
        let query = [b"SELECT ", &expression[..], b" FROM (SELECT $1) id(", &of[..], b")"].concat();
        // PostgreSQL's own functions can also do much, such as query_to_xml, so the owner's rights apply.
        let owner = to_utf8_lossy(owner).parse::<u32>().unwrap_or_default().into();
        let holds = qualified(|| {
            act_as(owner, || {
                connected(|client| client.update(&command(query), None, &[first.into()])?.first().get::<bool>(1))
            })
        });
        if holds == Some(false) {
            let [name, expression] = [name, expression].map(|text| shortened(text, LONGEST_SHOWN));
            key.purpose
                .refuse(&to_utf8_lossy(&key.table), ERRCODE_CHECK_VIOLATION)
                .detail(format!("Its constraint \"{name}\" refuses the next ID, {first}: CHECK {expression}."))
                .hint("Drop or change the constraint first, or use a layout whose IDs it allows.")
                .raise();
        }
    }
}
