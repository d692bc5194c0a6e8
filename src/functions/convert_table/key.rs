//! The key of a table, read from the catalog, and the reasons why it cannot be converted.
use std::str::FromStr;

use flake_core::Layout;
use pgrx::PgSqlErrorCode::*;
use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;

use crate::error::{Error, Undetailed, listed};
use crate::functions::statements::{Texts, names, rows, run};
use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::extension::Extension;
use crate::postgres::relation;

pub const NOT_READY: PgSqlErrorCode = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
const WIDEN: &str = "First widen the key and all columns that refer to it, for example by examples/widen.sql.";

/// All tables that are converted together with table $1, with their columns of the key's name and their defaults.
pub const MEMBERS: &str = "
    WITH RECURSIVE below(oid) AS (
        SELECT $1
        UNION SELECT i.inhrelid FROM pg_inherits i JOIN below ON i.inhparent = below.oid
    ), members AS (
        SELECT c.oid, c.relkind, a.attnum, pg_get_expr(d.adbin, d.adrelid) AS expression
        FROM below JOIN pg_class c ON c.oid = below.oid
        JOIN pg_attribute k ON k.attrelid = $1 AND k.attnum = $2
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = k.attname
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    )";

/// Table $1.
const TABLE: &str = "
    SELECT ARRAY[c.oid::regclass::text, c.relkind::text, c.relpersistence::text,
                 c.relispartition::text, pg_has_role(c.relowner, 'USAGE')::text]
    FROM pg_class c WHERE c.oid = $1";

/// The columns of the primary key of table $1, and whether the default calls a function of extension $2.
const KEY: &str = "
    SELECT ARRAY[quote_ident(a.attname), a.attnum::text, a.atttypid::text,
                 format_type(a.atttypid, NULL), a.attidentity::text, pg_get_expr(d.adbin, d.adrelid),
           EXISTS (
               SELECT FROM pg_depend u JOIN pg_depend e ON e.classid = u.refclassid AND e.objid = u.refobjid
               WHERE u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid AND u.refclassid = 'pg_proc'::regclass
                 AND e.refclassid = 'pg_extension'::regclass
                 AND e.refobjid = $2)::text]
    FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE k.conrelid = $1 AND k.contype = 'p'";

/// The columns that refer to the key, or to a column that does, with their types.
const REFERENCES: &str = "
    WITH RECURSIVE referring(relation, number) AS (
        SELECT $1, $2
        UNION SELECT f.conrelid, f.conkey[n] FROM referring r
        JOIN pg_constraint f ON f.confrelid = r.relation AND f.contype = 'f' AND f.conparentid = 0::oid
        CROSS JOIN generate_subscripts(f.confkey, 1) n
        WHERE f.confkey[n] = r.number
    )
    SELECT ARRAY[concat(a.attrelid::regclass, '.', quote_ident(a.attname)), a.atttypid::text]
    FROM referring r JOIN pg_attribute a ON a.attrelid = r.relation AND a.attnum = r.number";

/// Columns in the table's schema that look by their name as if they referred to the key, without a foreign key, with their types.
/// They belong to the caller. An array has a plural.
const LOOKALIKES: &str = "
    SELECT ARRAY[concat(a.attrelid::regclass, '.', quote_ident(a.attname)), a.atttypid::text, a.atttypmod::text]
    FROM pg_class t JOIN pg_attribute k ON k.attrelid = t.oid AND k.attnum = $2
    JOIN pg_attribute a ON regexp_replace(lower(replace(a.attname, '_', '')), 's$', '') = ANY (ARRAY[
        lower(replace(concat(t.relname, k.attname), '_', '')),
        lower(replace(concat(regexp_replace(t.relname, 's$', ''), k.attname), '_', ''))])
    JOIN pg_class c ON c.oid = a.attrelid AND c.relkind = ANY (ARRAY['r', 'p'])
    WHERE t.oid = $1 AND a.attnum > 0 AND NOT a.attisdropped AND pg_has_role(c.relowner, 'USAGE') AND NOT c.relispartition
      AND c.relnamespace = t.relnamespace AND NOT EXISTS (
        SELECT FROM pg_constraint f WHERE f.conrelid = a.attrelid AND f.contype = 'f' AND a.attnum = ANY (f.conkey))";

/// The tables with rows, their columns of the key, and in each an index that finds the greatest key by operators of family $3. Children
/// of other sessions' temporary schemas are left out, as in a query.
const INDEXES: &str = "
    SELECT ARRAY[m.oid::regclass::text, m.oid::text, m.attnum::text, (
        SELECT i.indexrelid::text FROM pg_index i
        JOIN pg_opclass o ON o.oid = i.indclass[0]
        WHERE i.indrelid = m.oid AND i.indkey[0] = m.attnum AND i.indisvalid
          AND i.indpred IS NULL AND o.opcfamily = $3 LIMIT 1)]
    FROM members m JOIN pg_class c ON c.oid = m.oid
    WHERE m.relkind <> 'p' AND NOT pg_is_other_temp_schema(c.relnamespace)";

/// The tables whose default could not be restored by an ALTER TABLE of their parent.
const WITH_OTHER_DEFAULT: &str = "
    SELECT ARRAY[m.oid::regclass::text] FROM members m, members t
    WHERE t.oid = $1 AND m.expression IS DISTINCT FROM t.expression";

/// A key that can be converted. Its names are qualified and in the database's encoding, because they become part of statements.
pub struct Key {
    pub oid: pg_sys::Oid,
    pub table: Vec<u8>,
    pub column: Vec<u8>,
    pub number: i16,
    pub default: Option<Vec<u8>>,
    pub is_identity: bool,
    /// Whether clients cannot choose keys.
    pub is_always: bool,
    pub purpose: Purpose,
    /// The tables with rows, their columns of the key, and indexes that find the greatest key.
    indexes: Vec<(pg_sys::Oid, i16, pg_sys::Oid)>,
}

impl Key {
    /// Reads the catalog as it is now. Raises an error if the key cannot be converted.
    pub fn of(table: pg_sys::Oid, flake: Extension, purpose: Purpose) -> Self {
        let name = require_table(table, purpose);
        let shown = to_utf8_lossy(&name);
        let mut columns = rows(KEY, &[table.into(), flake.oid.into()]);
        let column = match columns.len() {
            0 => purpose
                .refuse(&shown, NOT_READY)
                .detail(format!(
                    "It has no primary key, whose index {} needs to find the greatest ID.",
                    purpose.function()
                ))
                .hint("Add a primary key, for example with ALTER TABLE … ADD PRIMARY KEY USING INDEX.")
                .raise(),
            1 => columns.remove(0),
            _ => purpose
                .refuse(&shown, NOT_READY)
                .detail(format!("Its primary key has several columns: {}.", names(columns).join(", ")))
                .hint("Change the default of one of them by ALTER TABLE; see docs/how-to/convert.md.")
                .raise(),
        };
        let [Some(column), Some(number), Some(oid), Some(of), Some(identity), default, Some(is_flake)] = &column[..]
        else {
            unread()
        };
        let parsed = |text: &[u8]| to_utf8_lossy(text).parse::<u32>().unwrap_or_default();
        let base = relation::base_type(parsed(oid).into());
        if base != pg_sys::INT8OID {
            let (column, of) = (to_utf8_lossy(column), to_utf8_lossy(of));
            purpose
                .refuse(&shown, ERRCODE_DATATYPE_MISMATCH)
                .detail(format!("Its key {column} is of type {of}; IDs are of type bigint."))
                .hint(if is_narrow(base) { WIDEN } else { "Such keys cannot be compared with IDs." })
                .raise();
        }
        if &is_flake[..] == b"true" {
            purpose
                .refuse(&shown, NOT_READY)
                .detail(format!("The default of its key {} calls flake already.", to_utf8_lossy(column)))
                .hint(
                    "To change to another layout, run ALTER TABLE … ALTER COLUMN … DROP DEFAULT first, and convert \
                     again.",
                )
                .raise();
        }
        let number = parsed(number) as i16;
        let arguments: &[DatumWithOid<'_>] = &[table.into(), number.into()];
        let columns = names(narrow(rows(REFERENCES, arguments)));
        if !columns.is_empty() {
            let detail =
                format!("Columns that refer to its key are too small for IDs: {}.", listed(columns.iter(), "others"));
            purpose.refuse(&shown, ERRCODE_DATATYPE_MISMATCH).detail(detail).hint(WIDEN).raise();
        }
        let indexes = require_alike(purpose, &shown, table, number);
        Self {
            indexes,
            oid: table,
            table: name.clone(),
            column: column.clone(),
            number,
            default: default.clone(),
            is_identity: !identity.is_empty(),
            is_always: identity == b"a",
            purpose,
        }
    }

    /// Locks the table and its parts alone until the end of the transaction, as a statement that names the table does. The caller reads
    /// the key again: everything but the table may have changed.
    pub fn lock(&self) {
        run([b"LOCK TABLE ", &self.table[..], b" IN ACCESS EXCLUSIVE MODE"].concat());
        // The statement may have waited while another table got the name.
        if relation::quoted_name(self.oid).as_ref() != Some(&self.table) {
            self.purpose
                .refuse(&to_utf8_lossy(&self.table), NOT_READY)
                .detail("The table was renamed meanwhile.")
                .hint(format!("Call {} again.", self.purpose.function()))
                .raise();
        }
    }

    /// Returns the greatest key from a number on, if there is one. Waits for sessions that have locked a table or its index, and keeps no
    /// lock.
    pub fn greatest_from(&self, from: i64) -> Option<i64> {
        let greatest = self.indexes.iter().map(|&(table, column, index)| {
            relation::lock_to_read(table);
            relation::lock_to_read(index);
            let greatest = relation::greatest_from(table, index, column, from).unwrap_or_else(|| {
                self.purpose
                    .refuse(&to_utf8_lossy(&self.table), NOT_READY)
                    .detail("An index of its key was dropped meanwhile.")
                    .hint(format!("Call {} again.", self.purpose.function()))
                    .raise()
            });
            // A session that also has read the table and changes it next would meet a lock that becomes a stronger one: a deadlock.
            relation::unlock_to_read(index);
            relation::unlock_to_read(table);
            greatest
        });
        greatest.max().flatten()
    }
}

/// Raises an error unless it is a table of the current role. Returns its name.
fn require_table(table: pg_sys::Oid, purpose: Purpose) -> Vec<u8> {
    let Some(row) = rows(TABLE, &[table.into()]).pop() else {
        refuse_kind(purpose, &format!("with OID {}", table.to_u32()), "It does not exist.")
    };
    let [Some(name), Some(kind), Some(persistence), Some(is_partition), Some(is_owner)] = &row[..] else { unread() };
    let shown = to_utf8_lossy(name);
    let is = match (&kind[..], &persistence[..], &is_partition[..]) {
        (b"r" | b"p", b"t", _) => "It is a temporary table.",
        (b"r" | b"p", _, b"true") => "It is a partition.",
        (b"r" | b"p", ..) => "",
        (b"v", ..) => "It is a view.",
        (b"m", ..) => "It is a materialized view.",
        (b"f", ..) => "It is a foreign table.",
        _ => "It is not a table.",
    };
    if !is.is_empty() {
        refuse_kind(purpose, &shown, is);
    }
    if &is_owner[..] != b"true" {
        let function = purpose.function();
        purpose
            .refuse(&shown, ERRCODE_INSUFFICIENT_PRIVILEGE)
            .detail(format!("{function} alters the table as the calling role, which does not own it."))
            .hint(format!("Call {function} as the owner of the table."))
            .raise();
    }
    name.clone()
}

/// Requires an index and the same default in all tables that are converted together. Returns the tables with rows, and the indexes.
fn require_alike(
    purpose: Purpose,
    shown: &str,
    table: pg_sys::Oid,
    column: i16,
) -> Vec<(pg_sys::Oid, i16, pg_sys::Oid)> {
    let arguments = [table.into(), column.into(), relation::integer_family().into()];
    let (with_index, without): (Vec<_>, Vec<_>) =
        rows(format!("{MEMBERS}{INDEXES}"), &arguments).into_iter().partition(|row| row[3].is_some());
    let found = with_index
        .iter()
        .filter_map(|row| Some((number::<u32>(row, 1)?.into(), number(row, 2)?, number::<u32>(row, 3)?.into())))
        .collect();
    let tables = names(without);
    if !tables.is_empty() {
        purpose
            .refuse(shown, NOT_READY)
            .detail(format!("No index on the key finds the greatest ID in: {}.", listed(tables.iter(), "others")))
            .hint("Create a B-tree index there that begins with the key.")
            .raise();
    }
    let tables = names(rows(format!("{MEMBERS}{WITH_OTHER_DEFAULT}"), &arguments[..2]));
    if !tables.is_empty() {
        purpose
            .refuse(shown, NOT_READY)
            .detail(format!("The key has another default in: {}.", listed(tables.iter(), "others")))
            .hint("ALTER TABLE … SET DEFAULT gives all of them the same one, which \"undo\" can bring back.")
            .raise();
    }
    found
}

fn is_narrow(base: pg_sys::Oid) -> bool {
    [pg_sys::INT2OID, pg_sys::INT4OID].contains(&base)
}

fn refuse_kind(purpose: Purpose, table: &str, is: &str) -> ! {
    let acts = match purpose {
        Purpose::Convert => "converts",
        Purpose::Adopt => "adopts the keys of",
        Purpose::Release => "releases the keys of",
    };
    let hint = format!("{} {acts} tables, and all partitions with the table that they belong to.", purpose.function());
    purpose.refuse(table, ERRCODE_WRONG_OBJECT_TYPE).detail(is).hint(hint).raise()
}

/// Returns the number in a text of a row.
fn number<T: FromStr>(row: &Texts, place: usize) -> Option<T> {
    to_utf8_lossy(row.get(place)?.as_ref()?).parse().ok()
}

/// Returns the columns that IDs do not fit into; the second text of each is its type.
fn narrow(mut columns: Vec<Texts>) -> Vec<Texts> {
    columns.retain(|column| number::<u32>(column, 1).is_some_and(|of| is_narrow(relation::base_type(of.into()))));
    columns
}

/// Returns columns that are too small for IDs of a layout and may refer to the key without a foreign key.
pub fn lookalikes(key: &Key, layout: &Layout) -> Vec<String> {
    let mut columns = rows(LOOKALIKES, &[key.oid.into(), key.number.into()]);
    columns.retain(|column| {
        let of = number::<u32>(column, 1).zip(number::<i32>(column, 2));
        of.is_some_and(|(of, modifier)| relation::integers(of.into(), modifier) < 1 << layout.width())
    });
    names(columns)
}

/// Raises the error if a query of the catalog returns other columns than expected.
fn unread() -> ! {
    pgrx::error!("could not read the catalog")
}

/// The reason why a key or a sequence is read.
#[derive(Clone, Copy)]
pub enum Purpose {
    Convert,
    Adopt,
    Release,
}

impl Purpose {
    /// Returns the error of a table or a sequence with which it cannot be done.
    pub fn refuse(self, relation: &str, sqlstate: PgSqlErrorCode) -> Undetailed {
        let message = match self {
            Self::Convert => format!("cannot convert table {relation}"),
            Self::Adopt => format!("cannot adopt {relation}"),
            Self::Release => format!("cannot release {relation}"),
        };
        Error::of(sqlstate, message)
    }

    pub const fn function(self) -> &'static str {
        match self {
            Self::Convert => "flake_convert",
            Self::Adopt => "flake_adopt",
            Self::Release => "flake_release",
        }
    }
}
