//! The checks before a function works on an adopted sequence, in the order of PostgreSQL's own functions.

use pgrx::PgSqlErrorCode::{ERRCODE_INSUFFICIENT_PRIVILEGE, ERRCODE_UNDEFINED_TABLE};
use pgrx::pg_sys::Oid;

use super::memory::{self, Check};
use super::registry;
use crate::error::{Error, OrRaise};
use crate::postgres::relation;
use crate::postgres::sequence::{self, Parameters, Privilege};

/// Locks a sequence and checks the privilege of the current role. Returns the code of its layout, or None for a sequence that was not
/// adopted, and for what is not a sequence: PostgreSQL's own function checks those.
pub fn adopted(sequence: Oid, privilege: Privilege) -> Option<i64> {
    let Some(parameters) = sequence::parameters(sequence) else {
        require_relation(sequence).or_raise();
        return None;
    };
    code(sequence, &parameters)?;
    sequence::lock(sequence);
    // It may have been altered or dropped before the lock.
    let parameters = sequence::parameters(sequence)?;
    let code = code(sequence, &parameters)?;
    require_privilege(sequence, privilege).or_raise();
    if privilege == Privilege::Next {
        registry::require_closed(sequence, &parameters, code).or_raise();
    }
    Some(code)
}

/// PostgreSQL's own functions call a missing relation an internal error, XX000.
fn require_relation(sequence: Oid) -> Result<(), Error> {
    if relation::is_known(sequence) {
        return Ok(());
    }
    Err(Error::of(ERRCODE_UNDEFINED_TABLE, format!("relation with OID {} does not exist", sequence.to_u32()))
        .detail("The argument is the OID of a sequence."))
}

/// Returns the code of a sequence. Its owner may have changed every number that tells it, but the session remembers what it has used:
/// what is released gets a new sequence.
fn code(sequence: Oid, parameters: &Parameters) -> Option<i64> {
    registry::code(parameters).or_else(|| memory::known(sequence).map(|known| known.code))
}

/// Checks a sequence for nextval, and remembers it. Returns the name of its layout.
pub fn to_make_ids(sequence: Oid) -> Option<&'static str> {
    let code = adopted(sequence, Privilege::Next)?;
    // The layout of a code is the same as long as its name is; whether it still exists shows when an ID is made.
    let layout = match memory::known(sequence).filter(|known| known.code == code) {
        Some(known) => known.layout,
        None => registry::layout(sequence, code).or_raise().name(),
    };
    memory::learn(sequence, code, layout, Check::now());
    Some(layout)
}

fn require_privilege(sequence: Oid, privilege: Privilege) -> Result<(), Error> {
    if sequence::is_allowed(sequence, privilege) {
        return Ok(());
    }
    let (detail, hint) = match privilege {
        Privilege::Next => (
            "To make an ID, a role needs USAGE or UPDATE on the sequence, or INSERT on a column of the table that owns it.",
            "The owner of the sequence can GRANT USAGE ON SEQUENCE … to the role.",
        ),
        Privilege::Current => (
            "To read the last ID, a role needs USAGE or SELECT on the sequence.",
            "The owner of the sequence can GRANT USAGE ON SEQUENCE … to the role.",
        ),
        Privilege::Set => (
            "To set the sequence, a role needs UPDATE on it.",
            "The owner of the sequence can GRANT UPDATE ON SEQUENCE … to the role.",
        ),
    };
    let message = format!("permission denied for sequence {}", sequence::name(sequence));
    Err(Error::of(ERRCODE_INSUFFICIENT_PRIVILEGE, message).detail(detail).hint(hint))
}
