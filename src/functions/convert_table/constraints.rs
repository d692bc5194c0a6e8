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
        SELECT atttypid FROM pg_attribute WHERE attrelid = $1 AND attnum = $2
        UNION SELECT t.typbasetype FROM domains JOIN pg_type t ON t.oid = domains.oid
        WHERE t.typbasetype <> 0::oid
    )
    SELECT DISTINCT ARRAY[c.conname::text, pg_get_expr(c.conbin, c.conrelid), n.name, n.owner::text]
    FROM pg_constraint c JOIN (
        SELECT 'pg_class'::regclass, m.oid, ARRAY[m.attnum], quote_ident(a.attname), r.relowner
        FROM members m JOIN pg_class r ON r.oid = m.oid
        JOIN pg_attribute a ON a.attrelid = m.oid AND a.attnum = m.attnum
        UNION ALL SELECT 'pg_type'::regclass, d.oid, NULL, 'value', t.typowner
        FROM domains d JOIN pg_type t ON t.oid = d.oid
    ) n(kind, oid, columns, name, owner) ON CASE WHEN n.columns IS NULL THEN c.contypid = n.oid
              ELSE c.conrelid = n.oid AND c.conkey = n.columns END
    WHERE c.contype = 'c' AND (to_jsonb(c) ->> 'conenforced') IS DISTINCT FROM 'false' AND NOT EXISTS (
        SELECT FROM pg_depend u WHERE u.classid = 'pg_constraint'::regclass AND u.objid = c.oid AND u.deptype = 'n'
          AND u.refclassid = ANY (ARRAY['pg_proc'::regclass::oid, 'pg_operator'::regclass, 'pg_type'::regclass]))";

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
