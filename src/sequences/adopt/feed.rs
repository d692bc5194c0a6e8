//! The sequence that feeds a column, read from the catalog, and the reasons why it cannot be adopted.

use std::collections::BTreeSet;
use std::str::FromStr;

use pgrx::PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE;
use pgrx::pg_sys::Oid;

use crate::error::{Error, OrRaise, listed};
use crate::functions::convert_table::key::{Key, MEMBERS, NOT_READY, Purpose};
use crate::functions::statements::{Texts, names, rows};
use crate::ledger;
use crate::postgres::encoding::{shortened, to_utf8_lossy};
use crate::postgres::extension;
use crate::postgres::sequence::{self, Parameters, Place};

/// The sequences of the column ($1, $2): its identity's, or those that its default uses. For each, whether the column owns it.
const FEEDS: &str = "
    SELECT ARRAY[d.objid::oid::text, 'true'] FROM pg_depend d
    WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = $1 AND d.refobjsubid = $2
      AND d.deptype = 'i'::\"char\"
    UNION SELECT ARRAY[s.seqrelid::oid::text, EXISTS (
        SELECT FROM pg_depend o
        WHERE o.classid = 'pg_class'::regclass AND o.objid = s.seqrelid AND o.refclassid = 'pg_class'::regclass
          AND o.refobjid = $1 AND o.refobjsubid = $2
          AND o.deptype = 'a'::\"char\")::text]
    FROM pg_attrdef e JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = e.oid
     AND d.refclassid = 'pg_class'::regclass
    JOIN pg_sequence s ON s.seqrelid = d.refobjid
    WHERE e.adrelid = $1 AND e.adnum = $2";

/// The name of sequence $1, its owner, whether the owner is the current role, its comment, whether it is unlogged, whether it is temporary,
/// the name as a literal, and whether the current role has the privileges of the owner.
const SEQUENCE: &str = "
    SELECT ARRAY[c.oid::regclass::text, quote_ident(pg_get_userbyid(c.relowner)),
        (pg_get_userbyid(c.relowner) = CURRENT_USER)::text,
        quote_literal(obj_description(c.oid, 'pg_class')),
        (c.relpersistence = 'u'::\"char\")::text,
        (c.relpersistence = 't'::\"char\")::text,
        quote_literal(c.oid::regclass::text),
        pg_has_role(c.relowner, 'USAGE')::text]
    FROM pg_class c WHERE c.oid = $1";

/// The privileges on sequence $1: for each, the role, or NULL for the owner, and whether the role may grant it.
const GRANTS: &str = "
    SELECT ARRAY[a.privilege_type, CASE WHEN a.grantee = 0::oid THEN 'PUBLIC'
            WHEN a.grantee <> c.relowner THEN quote_ident(pg_get_userbyid(a.grantee))
        END, CASE WHEN bool_or(a.is_grantable) THEN ' WITH GRANT OPTION' END]
    FROM pg_class c
    CROSS JOIN LATERAL aclexplode(COALESCE(c.relacl, acldefault('s', c.relowner))) a
    WHERE c.oid = $1 GROUP BY a.privilege_type, a.grantee, c.relowner";

/// The objects that would be lost with sequence $3, other than the defaults of the column ($1, $2) in all tables that are adopted together;
/// and another column that owns the sequence, which the new one could not be given to.
const DEPENDENTS: &str = "
    SELECT ARRAY[pg_describe_object(d.classid, d.objid, d.objsubid)] FROM pg_depend d
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = $3 AND NOT EXISTS (
        SELECT FROM members m JOIN pg_attrdef e ON e.adrelid = m.oid AND e.adnum = m.attnum
        WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = e.oid)
    UNION SELECT ARRAY[pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid)] FROM pg_depend d
    WHERE d.classid = 'pg_class'::regclass AND d.objid = $3
      AND (d.deptype = 'e'::\"char\" OR d.deptype = 'a'::\"char\" AND $1 <> 0::oid
        AND (d.refobjid <> $1 OR d.refobjsubid <> $2))";

/// A privilege on a sequence that a role has.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    pub privilege: Vec<u8>,
    /// The role, unless it is the owner.
    pub role: Option<Vec<u8>>,
    pub option: Vec<u8>,
}

impl Grant {
    fn of(row: &Texts) -> Option<Self> {
        let [privilege, role, option] = &row[..] else { return None };
        Some(Self { privilege: privilege.clone()?, role: role.clone(), option: option.clone().unwrap_or_default() })
    }
}

/// A sequence, as statements name it and make it again.
pub struct Sequence {
    pub oid: Oid,
    pub place: Place,
    pub name: Vec<u8>,
    /// The name as a literal.
    pub literal: Vec<u8>,
    pub owner: Vec<u8>,
    pub is_own: bool,
    pub comment: Option<Vec<u8>>,
    pub is_unlogged: bool,
    pub grants: BTreeSet<Grant>,
    /// Whether the current role has the privileges of the owner.
    is_allowed: bool,
    pub parameters: Parameters,
}

impl Sequence {
    /// Reads a sequence. Raises an error if the relation is none.
    pub fn of(oid: Oid) -> Self {
        let found = rows(SEQUENCE, &[oid.into()]);
        let (
            Some(
                [
                    Some(name),
                    Some(owner),
                    Some(is_own),
                    comment,
                    Some(is_unlogged),
                    Some(is_temporary),
                    Some(literal),
                    Some(is_allowed),
                ],
            ),
            Some(parameters),
            Some(place),
        ) = (found.first().map(|row| &row[..]), sequence::parameters(oid), Place::of(oid))
        else {
            Purpose::Adopt
                .refuse(&format!("with OID {}", oid.to_u32()), NOT_READY)
                .detail("There is no sequence of this OID.")
                .hint("Name a table, or a sequence that no column owns.")
                .raise()
        };
        if is_temporary == b"true" {
            Purpose::Adopt
                .refuse(&to_utf8_lossy(name), NOT_READY)
                .detail("The sequence is temporary.")
                .hint("Temporary tables need no adopted sequences: their rows end with the session.")
                .raise();
        }
        let grants = rows(GRANTS, &[oid.into()]);
        Self {
            oid,
            place,
            name: name.clone(),
            literal: literal.clone(),
            owner: owner.clone(),
            is_own: is_own == b"true",
            comment: comment.clone(),
            is_unlogged: is_unlogged == b"true",
            grants: grants.iter().filter_map(Grant::of).collect(),
            is_allowed: is_allowed == b"true",
            parameters,
        }
    }

    /// Locks the sequence, so that no other session gets a number of it until the end of the transaction. The caller reads it again:
    /// it may have changed.
    pub fn lock(&self) {
        if !self.is_allowed {
            Error::of(
                ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("must be owner of sequence {}", to_utf8_lossy(&self.name)),
            )
            .detail("A sequence is replaced by another one, which only its owner can do.")
            .hint("Call the procedure as a role that has the privileges of the owner.")
            .raise();
        }
        sequence::lock_alone(self.oid);
    }

    /// Raises an error if something other than a key uses the sequence.
    pub fn require_unused(&self, key: Option<&Key>) {
        let (table, column) = key.map_or((Oid::INVALID, 0), |key| (key.oid, key.number));
        let arguments = [table.into(), column.into(), self.oid.into()];
        let dependents = names(rows(format!("{MEMBERS}{DEPENDENTS}"), &arguments));
        if !dependents.is_empty() {
            let name = to_utf8_lossy(&self.name);
            Purpose::Adopt
                .refuse(&name, NOT_READY)
                .detail(format!(
                    "These objects are bound to the sequence, or to PostgreSQL's nextval() of it: {}.",
                    listed(dependents.iter(), "others")
                ))
                .hint(
                    "Drop them, or change them so that they do not use the sequence, and create them again afterwards.",
                )
                .raise();
        }
    }
}

/// A sequence, and how it feeds the key of a table.
pub struct Feed {
    pub sequence: Sequence,
    pub is_owned: bool,
}

impl Feed {
    /// Returns the sequence that feeds a key. Raises an error if there is none, or more than one.
    pub fn of(key: &Key) -> Self {
        let table = to_utf8_lossy(&key.table).into_owned();
        let found = rows(FEEDS, &[key.oid.into(), i32::from(key.number).into()]);
        let [feed] = &found[..] else {
            key.purpose
                .refuse(&table, NOT_READY)
                .detail(format!(
                    "Its key {} gets its numbers from {} sequences.",
                    to_utf8_lossy(&key.column),
                    found.len()
                ))
                .hint("For a key without a sequence, use flake_convert.")
                .raise()
        };
        let text =
            |place: usize| to_utf8_lossy(feed.get(place).and_then(Option::as_deref).unwrap_or_default()).into_owned();
        let sequence = Sequence::of(Oid::from(u32::from_str(&text(0)).unwrap_or_default()));
        // PostgreSQL prints it so; the literal of a statement may begin with E.
        let printed = to_utf8_lossy(&sequence.name).replace('\'', "''");
        let call = format!("nextval('{printed}'::regclass)");
        let default = key.default.as_ref().map(|default| to_utf8_lossy(default));
        if let Some(default) = default.filter(|default| default.trim_start_matches("flake_sequences.") != call) {
            key.purpose
                .refuse(&table, NOT_READY)
                .detail(format!("The default of its key is an expression: {}.", shortened(default.as_bytes(), 200)))
                .hint("Change the default to nextval of the sequence alone, or use flake_next in the expression.")
                .raise();
        }
        Self { is_owned: text(1) == "true", sequence }
    }
}

/// Returns the key of a table and the sequence that feeds it.
pub fn key_and_feed(table: Oid, purpose: Purpose) -> (Key, Feed) {
    let flake = extension::find(c"flake").ok_or_else(ledger::no_page).or_raise();
    let key = Key::of(table, flake, purpose);
    let feed = Feed::of(&key);
    (key, feed)
}
