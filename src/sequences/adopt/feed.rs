//! The sequence that feeds a column, read from the catalog, and the reasons why it cannot be adopted.

use std::str::FromStr;

use pgrx::pg_sys::Oid;
use pgrx::spi::{SpiClient, SpiError};

use crate::error::listed;
use crate::functions::convert_table::key::{Key, MEMBERS, NOT_READY, unadoptable};
use crate::functions::convert_table::statements::{names, qualified, rows};
use crate::postgres::encoding::{shortened, to_utf8_lossy};
use crate::postgres::sequence::{self, Parameters};

/// The sequences of the column ($1, $2): its identity's, or those that its default uses. For each, whether the column owns it.
const FEEDS: &str = "
    SELECT ARRAY[d.objid::pg_catalog.oid::pg_catalog.text, 'true'] FROM pg_catalog.pg_depend d
    WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
      AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
      AND d.refobjid OPERATOR(pg_catalog.=) $1 AND d.refobjsubid OPERATOR(pg_catalog.=) $2
      AND d.deptype OPERATOR(pg_catalog.=) 'i'::\"char\"
    UNION SELECT ARRAY[s.seqrelid::pg_catalog.oid::pg_catalog.text, EXISTS (
        SELECT FROM pg_catalog.pg_depend o
        WHERE o.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
          AND o.objid OPERATOR(pg_catalog.=) s.seqrelid
          AND o.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
          AND o.refobjid OPERATOR(pg_catalog.=) $1 AND o.refobjsubid OPERATOR(pg_catalog.=) $2
          AND o.deptype OPERATOR(pg_catalog.=) 'a'::\"char\")::pg_catalog.text]
    FROM pg_catalog.pg_attrdef e JOIN pg_catalog.pg_depend d
      ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass AND d.objid OPERATOR(pg_catalog.=) e.oid
     AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
    JOIN pg_catalog.pg_sequence s ON s.seqrelid OPERATOR(pg_catalog.=) d.refobjid
    WHERE e.adrelid OPERATOR(pg_catalog.=) $1 AND e.adnum OPERATOR(pg_catalog.=) $2";

/// The name of sequence $1, its owner, whether the owner is the current role, its comment, and whether it is unlogged.
const SEQUENCE: &str = "
    SELECT ARRAY[c.oid::pg_catalog.regclass::pg_catalog.text,
        pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(c.relowner)),
        (pg_catalog.pg_get_userbyid(c.relowner) OPERATOR(pg_catalog.=) CURRENT_USER)::pg_catalog.text,
        pg_catalog.quote_literal(pg_catalog.obj_description(c.oid, 'pg_class')),
        (c.relpersistence OPERATOR(pg_catalog.=) 'u'::\"char\")::pg_catalog.text,
        (c.relpersistence OPERATOR(pg_catalog.=) 't'::\"char\")::pg_catalog.text,
        pg_catalog.quote_literal(c.oid::pg_catalog.regclass::pg_catalog.text)]
    FROM pg_catalog.pg_class c WHERE c.oid OPERATOR(pg_catalog.=) $1";

/// The statements that grant the privileges on sequence $1.
const GRANTS: &str = "
    SELECT ARRAY[pg_catalog.concat('GRANT ', a.privilege_type, ' ON SEQUENCE ', c.oid::pg_catalog.regclass, ' TO ',
        CASE a.grantee WHEN 0::pg_catalog.oid THEN 'PUBLIC' ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)) END,
        CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' END)]
    FROM pg_catalog.pg_class c CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) a
    WHERE c.oid OPERATOR(pg_catalog.=) $1 AND a.grantee OPERATOR(pg_catalog.<>) c.relowner";

/// The objects that would be lost with sequence $3, other than the defaults of the column ($1, $2) in all tables that are adopted together.
const DEPENDENTS: &str = "
    SELECT ARRAY[pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid)] FROM pg_catalog.pg_depend d
    WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
      AND d.refobjid OPERATOR(pg_catalog.=) $3 AND NOT EXISTS (
        SELECT FROM members m JOIN pg_catalog.pg_attrdef e
          ON e.adrelid OPERATOR(pg_catalog.=) m.oid AND e.adnum OPERATOR(pg_catalog.=) m.attnum
        WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass
          AND d.objid OPERATOR(pg_catalog.=) e.oid)
    UNION SELECT ARRAY[pg_catalog.pg_describe_object(d.refclassid, d.refobjid, 0)] FROM pg_catalog.pg_depend d
    WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
      AND d.objid OPERATOR(pg_catalog.=) $3 AND d.deptype OPERATOR(pg_catalog.=) 'e'::\"char\"";

/// A sequence, as statements name it and make it again.
pub struct Sequence {
    pub oid: Oid,
    pub name: Vec<u8>,
    /// The name as a literal.
    pub literal: Vec<u8>,
    pub owner: Vec<u8>,
    pub is_own: bool,
    pub comment: Option<Vec<u8>>,
    pub is_unlogged: bool,
    pub grants: Vec<Vec<u8>>,
    pub parameters: Parameters,
}

impl Sequence {
    /// Reads a sequence. Raises an error if the relation is none.
    pub fn of(client: &mut SpiClient<'_>, oid: Oid) -> Result<Self, SpiError> {
        let found = qualified(|| rows(client, SEQUENCE, &[oid.into()]))?;
        let (
            Some(
                [Some(name), Some(owner), Some(is_own), comment, Some(is_unlogged), Some(is_temporary), Some(literal)],
            ),
            Some(parameters),
        ) = (found.first().map(|row| &row[..]), sequence::parameters(oid))
        else {
            unadoptable(&format!("with OID {}", oid.to_u32()), NOT_READY)
                .detail("There is no sequence of this OID.")
                .hint("Name a table, or a sequence that no column owns.")
                .raise()
        };
        if is_temporary == b"true" {
            unadoptable(&to_utf8_lossy(name), NOT_READY)
                .detail("The sequence is temporary.")
                .hint("Temporary tables need no adopted sequences: their rows end with the session.")
                .raise();
        }
        let grants = qualified(|| rows(client, GRANTS, &[oid.into()]))?;
        Ok(Self {
            oid,
            name: name.clone(),
            literal: literal.clone(),
            owner: owner.clone(),
            is_own: is_own == b"true",
            comment: comment.clone(),
            is_unlogged: is_unlogged == b"true",
            grants: grants.into_iter().flatten().flatten().collect(),
            parameters,
        })
    }

    /// Raises an error if something other than a key uses the sequence.
    pub fn require_unused(&self, client: &mut SpiClient<'_>, key: Option<&Key>) -> Result<(), SpiError> {
        let (table, column) = key.map_or((Oid::INVALID, 0), |key| (key.oid, key.number));
        let arguments = [table.into(), column.into(), self.oid.into()];
        let dependents = names(qualified(|| rows(client, format!("{MEMBERS}{DEPENDENTS}"), &arguments))?);
        if !dependents.is_empty() {
            let name = to_utf8_lossy(&self.name);
            unadoptable(&name, NOT_READY)
                .detail(format!(
                    "These objects are bound to the sequence, or to PostgreSQL's nextval() of it: {}.",
                    listed(dependents.iter(), "others")
                ))
                .hint(
                    "Drop them, or change them so that they do not use the sequence, and create them again afterwards.",
                )
                .raise();
        }
        Ok(())
    }
}

/// A sequence, and how it feeds the key of a table.
pub struct Feed {
    pub sequence: Sequence,
    pub is_owned: bool,
}

impl Feed {
    /// Returns the sequence that feeds a key. Raises an error if there is none, or more than one.
    pub fn of(client: &mut SpiClient<'_>, key: &Key) -> Result<Self, SpiError> {
        let table = to_utf8_lossy(&key.table).into_owned();
        let found = rows(client, FEEDS, &[key.oid.into(), i32::from(key.number).into()])?;
        let [feed] = &found[..] else {
            unadoptable(&table, NOT_READY)
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
        let sequence = Sequence::of(client, Oid::from(u32::from_str(&text(0)).unwrap_or_default()))?;
        // PostgreSQL prints it so; the literal of a statement may begin with E.
        let printed = to_utf8_lossy(&sequence.name).replace('\'', "''");
        let call = format!("nextval('{printed}'::regclass)");
        let default = key.default.as_ref().map(|default| to_utf8_lossy(default));
        if let Some(default) = default.filter(|default| default.trim_start_matches("flake_sequences.") != call) {
            unadoptable(&table, NOT_READY)
                .detail(format!("The default of its key is an expression: {}.", shortened(default.as_bytes(), 200)))
                .hint("Change the default to nextval of the sequence alone, or use flake_next in the expression.")
                .raise();
        }
        Ok(Self { is_owned: text(1) == "true", sequence })
    }
}
