//! Checks of shared memory: the ledger, and the version of the library that has created it.

use flake_core::ledger::state::Ledger;

use super::finding::Finding;
use crate::ledger;
use crate::postgres::timestamptz::to_text;

/// By how many microseconds a mark may be ahead of the clock. While IDs are made, it is a few seconds ahead.
const AHEAD: i64 = 10_000_000;

/// Finds used time ahead of the clock, which shows that the clock was ahead.
pub fn marks(ledger: Option<&Ledger>, now: i64) -> Finding {
    if let Some(error) = ledger::file_error() {
        let Finding { ok, detail, hint } = Finding::from(&error);
        return Finding { ok, detail: format!("No IDs can be made: {error}. {detail}"), hint };
    }
    let Some(ledger) = ledger else { return Finding::fine("No ID has been made since the server started.") };
    let time = to_text;
    let next = ledger.time.next_free(now);
    if next.saturating_sub(now) > AHEAD {
        return Finding::wrong(
            format!(
                "The clock was ahead, and time has been used until {}, which is in {} seconds; until then flake_next makes no IDs.",
                time(next),
                (next - now) / 1_000_000
            ),
            "Check the clock. If it is right now, a superuser can call flake_accept_clock(); see docs/how-to/runbook.md.",
        );
    }
    let skipped: Vec<_> = ledger
        .time
        .used_ahead(now)
        .into_iter()
        .filter(|(_, until)| until - now > AHEAD)
        .map(|(from, until)| format!("{} to {}", time(from), time(until)))
        .collect();
    if skipped.is_empty() {
        return Finding::fine("No time ahead of the clock has been used.");
    }
    Finding::wrong(
        format!(
            "The clock was ahead, and has used the time from {}; no IDs are made in it again.",
            skipped.join(", from ")
        ),
        "Expect no IDs during that time, and check the clock; see docs/how-to/runbook.md.",
    )
}

/// Checks that the values which `pg_upgrade` keeps reach as far as this database's marks.
pub fn upgrade() -> Finding {
    match ledger::used_until() {
        Err(error) => Finding::from(&error),
        Ok(None) => Finding::fine("This database has no marks."),
        Ok(Some((until, taken))) if taken >= Some(until) => Finding::fine("pg_upgrade keeps the high-water mark."),
        Ok(Some((until, _))) => Finding::wrong(
            format!("IDs of this database reach up to {}, which pg_upgrade would not take along.", to_text(until)),
            "Make an ID in this database before pg_upgrade. If flake_next raises an error, wait until it makes IDs.",
        ),
    }
}

/// Checks which version of the library has created the shared memory.
pub fn library() -> Finding {
    match ledger::memory_error() {
        None => Finding::fine("This session can use the shared memory of the server's other sessions."),
        Some(error) => Finding::from(&error),
    }
}
