//! Whether applications can lease: the limits, the clock, and the functions of an owner by which other roles ask.

use flake_core::ledger::pool::{AHEAD, MOST_LEASES};
use flake_core::ledger::state::Ledger;
use pgrx::prelude::*;

use super::finding::Finding;
use crate::error::listed;
use crate::functions::layout_uses::LONGEST_OBJECT;
use crate::postgres::encoding::shortened;
use crate::postgres::memory::push;
use crate::postgres::recovery;
use crate::postgres::timestamptz::to_text;
use crate::{ledger, settings};

/// Functions that call flake_lease as their owner, who may not. A body is a string, or has dependencies.
const REFUSED: &str = "
    SELECT pg_catalog.pg_describe_object('pg_catalog.pg_proc'::pg_catalog.regclass, p.oid, 0)
    FROM pg_catalog.pg_proc p, pg_catalog.pg_database b, pg_catalog.pg_extension e
    WHERE b.datname OPERATOR(pg_catalog.=) pg_catalog.current_database() AND e.extname OPERATOR(pg_catalog.=) 'flake'
      AND p.prosecdef AND NOT pg_catalog.pg_has_role(p.proowner, b.datdba, 'USAGE')
      AND NOT pg_catalog.pg_has_role(p.proowner, e.extowner, 'USAGE')
      AND (p.prosrc OPERATOR(pg_catalog.~) 'flake_(lease|release)\\s*[(]' OR EXISTS (
        SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_proc l ON l.oid OPERATOR(pg_catalog.=) d.refobjid
        WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid OPERATOR(pg_catalog.=) p.oid
          AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
          AND l.prosrc OPERATOR(pg_catalog.=) ANY ('{flake_lease,flake_release}')))";

/// Finds what keeps applications of this database from leases.
pub fn leases(ledger: Option<&Ledger>, now: i64) -> Finding {
    let refused = refused();
    if !refused.is_empty() {
        return Finding::wrong(
            format!("These functions call flake_lease as a role that may not: {}.", listed(refused.iter(), "others")),
            "Give them to an owner of the database or of the extension with ALTER FUNCTION … OWNER TO.",
        );
    }
    let opens_at = ledger.map_or(now, |ledger| ledger.pool.time.next_free(now));
    if opens_at.saturating_sub(now) > AHEAD {
        return Finding::wrong(
            format!("The clock was ahead, and no lease is granted before {}.", to_text(opens_at)),
            "Check the clock. If it is right now, a superuser can call flake_accept_clock(); see docs/how-to/runbook.md.",
        );
    }
    let Some(all) = ledger::leases_at_once(now) else {
        return Finding::unknown("A session is writing the file flake.mark, so the leases could not be counted.");
    };
    if all.len() >= MOST_LEASES {
        return Finding::wrong(
            format!("The server has {MOST_LEASES} leases, and can have no more."),
            "See in flake_leases who has them, and lower flake.max_leases of these databases.",
        );
    }
    let (own, most) =
        (all.iter().filter(|lease| lease.database == recovery::database()).count(), settings::max_leases());
    if own >= most && most > 0 {
        return Finding::wrong(
            format!("As many leases as flake.max_leases allows are in use: {own}."),
            "See in flake_leases who has them. A superuser can raise the limit with ALTER DATABASE … SET flake.max_leases.",
        );
    }
    Finding::fine(if opens_at > now {
        format!(
            "Leases from before the start of the server may not have ended, so no lease is granted before {}.",
            to_text(opens_at)
        )
    } else {
        format!("This database has {own} of the {most} leases that flake.max_leases allows.")
    })
}

fn refused() -> Vec<String> {
    Spi::connect(|client| {
        let mut refused = Vec::new();
        for row in client.select(REFUSED, None, &[])? {
            row.get::<&str>(1)?
                .into_iter()
                .for_each(|name| push(&mut refused, shortened(name.as_bytes(), LONGEST_OBJECT)));
        }
        Ok::<_, pgrx::spi::SpiError>(refused)
    })
    .unwrap_or_else(|error| pgrx::error!("{error}"))
}
