//! Checks of shared memory: the ledger, and the version of the library that has created it.

use flake_core::Turns;
use flake_core::ledger::time::grant::{MAX_AHEAD_MICROS, RESERVE_AHEAD_MICROS};

use super::finding::Finding;
use crate::functions::statements::texts;
use crate::ledger::{self, Status};
use crate::settings;

/// Finds IDs that lead the clock, or would lead it after a restart.
pub fn lead(status: &Status, now: i64) -> Finding {
    if let Some(error) = ledger::file_error() {
        let Finding { ok, detail, hint } = Finding::from(&error);
        return Finding { ok, detail: format!("No IDs can be made: {error}. {detail}"), hint };
    }
    let Some(ledger) = status.ledger else { return Finding::fine("No ID has been made since the server started.") };
    let lead = status.lead.max(ledger.reserved.end().saturating_sub(now).saturating_sub(RESERVE_AHEAD_MICROS));
    let by = lead.max(0) / 1_000_000;
    if lead < MAX_AHEAD_MICROS {
        return Finding::fine(format!("IDs lead the clock by {by} seconds."));
    }
    let detail =
        format!("IDs lead the clock by {by} seconds, or will after a restart, because it was ahead or is behind.");
    let hint = if lead > settings::max_lead() {
        "That is more than flake.max_lead, so no IDs are made. Check the clock. If it is right, a superuser can call \
         flake_accept_clock() in each database; see docs/how-to/runbook.md."
    } else {
        "Check the clock. If it is right, the lead shrinks by itself, or a superuser can call flake_accept_clock() in each \
         database; see docs/how-to/runbook.md."
    };
    Finding::wrong(detail, hint)
}

/// Checks that `pg_upgrade` keeps what is reserved in this database, and the turn of this server.
pub fn upgrade() -> Finding {
    let (record, is_kept) = match ledger::record() {
        Err(error) => return Finding::from(&error),
        Ok(None) => return Finding::fine("This database has no record."),
        Ok(Some(found)) => found,
    };
    // Only the file and the databases that were used since the promotion know the turn, and pg_upgrade does not copy the file. The
    // numbers are compared, because records leave out timelines of great numbers.
    let number = |last| Turns { before: None, last }.number();
    if let Some(Ok((turn, _))) = ledger::turn()
        && number(record.turns.last) != number(Some(turn))
    {
        return Finding::wrong(
            "This database was not used since this server was promoted or upgraded, so pg_upgrade would not keep the server's turn.",
            "Make an ID in this database before pg_upgrade.",
        );
    }
    if !is_kept {
        return Finding::wrong(
            "The last value of sequence \"flake_mark\", \"flake_turns\" or of their copies is not the one that flake has set, and pg_upgrade would keep it.",
            "Make an ID in this database before pg_upgrade.",
        );
    }
    let roles = writers();
    if roles.is_empty() {
        return Finding::fine("pg_upgrade keeps which time was used.");
    }
    Finding::wrong(
        format!(
            "These roles can set the sequences by which pg_upgrade keeps which time was used: {}.",
            roles.join(", ")
        ),
        "Revoke UPDATE on the sequences of schema flake_internal but flake_last.",
    )
}

/// The roles other than superusers and predefined ones that may change the sequences.
fn writers() -> Vec<String> {
    let query = "
        SELECT r.rolname::pg_catalog.text FROM pg_catalog.pg_roles r
        WHERE NOT r.rolsuper AND NOT pg_catalog.starts_with(r.rolname::pg_catalog.text, 'pg_') AND EXISTS (
            SELECT FROM pg_catalog.pg_class c
            WHERE c.relkind OPERATOR(pg_catalog.=) 'S' AND c.relnamespace OPERATOR(pg_catalog.=) 'flake_internal'::pg_catalog.regnamespace
              -- The sequence of flake_sequences, which every session may set.
              AND c.relname OPERATOR(pg_catalog.<>) 'flake_last'
              AND c.relowner OPERATOR(pg_catalog.<>) r.oid AND pg_catalog.has_sequence_privilege(r.oid, c.oid, 'UPDATE'))
        ORDER BY 1 LIMIT 5";
    texts(query)
}

/// Checks which version of the library has created the shared memory.
pub fn library() -> Finding {
    match ledger::memory_error() {
        None => Finding::fine("This session can use the shared memory of the server's other sessions."),
        Some(error) => Finding::from(&error),
    }
}
