//! Asking for a watermark: the session announces flake's time, then takes the lowest bound of the transactions that its snapshot sees as
//! running.
//!
//! 1. flake's time is announced before the bounds are read, and the era is compared after that.
//! 2. The procs are read before the prepared transactions, because a transaction is among the latter before it leaves its proc.
//! 3. The transactions that were prepared before the server started are learned before the first watermark.

use std::sync::atomic::{Ordering, fence};

use super::host::{QuerySnapshot, Refusal, WatermarkHost};
use super::prepared::{self, Prepared, Transactions};
use super::transactions::SessionTransactions;
use super::{NONE, Snapshot, widened};
use crate::instant::MIN_INSTANT;
use crate::ledger::durable::page::ensure_page_current;
use crate::ledger::time::grant::{Grant, grant};
use crate::ledger::time::lead;

/// Returns a watermark: neither this query nor a later one can find a new row with an ID below it.
pub fn ask<H: WatermarkHost>(
    host: &mut H,
    session: &SessionTransactions,
    snapshot: &impl QuerySnapshot,
) -> Result<i64, H::Error> {
    if let Some(known) = snapshot.cached_watermark() {
        return Ok(known);
    }
    let transactions = snapshot.transactions();
    // The ledger began when this session joined it.
    if host.most_prepared() > 0 {
        learn_prepared(host);
        check_learned(host, &transactions)?;
    }
    loop {
        let era = host.shared().era();
        let Some(announced) = announce(host, era)? else { continue };
        let watermark = scan(host, &transactions)?.min(announced);
        debug_assert!(
            host.shared().era() != era || host.shared().announced(era).load(Ordering::SeqCst) >= watermark,
            "a watermark was announced"
        );
        if host.shared().era() != era {
            continue;
        }
        let watermark =
            if snapshot.is_of_transaction() { session.not_before_the_last(watermark, era) } else { watermark };
        snapshot.cache_watermark(watermark);
        return Ok(watermark);
    }
}

/// Announces flake's time in an era, and returns the highest instant that was announced. From then on, no ID below it is made in the
/// era's generation: not by a session of this server, not after a crash, and not by a server that continues from its WAL. If no time is
/// granted, the clock is announced. Returns None if the era has changed, or if a session of another database has announced an instant
/// that the page of this database does not cover.
fn announce<H: WatermarkHost>(host: &mut H, era: u64) -> Result<Option<i64>, H::Error> {
    // After a start, IDs lead the clock although nobody has made one.
    let floor = host.lock(|state| state.ledger.map(|ledger| ledger.floor));
    let earlier = host.shared().announced(era).load(Ordering::SeqCst);
    let now = host.time(era, false).max(floor.unwrap_or(MIN_INSTANT)).max(earlier);
    let (instant, covered) = match grant(host, era, now)? {
        Grant::Until(until) => (now, until),
        Grant::Over => return Ok(None),
        Grant::TooFar(_) => {
            let reserved = host.lock(|state| state.ledger.map(|ledger| ledger.reserved.end()));
            ensure_page_current(host)?;
            let covered = reserved.unwrap_or(now);
            (now.min(host.clock()).min(covered.saturating_sub(1)), covered)
        }
    };
    debug_assert!(
        host.shared().era() != era || earlier <= covered,
        "the page covers what was announced before, or the session would ask for ever"
    );
    host.point("granted");
    let announced = lead::announce(host, era, instant);
    fence(Ordering::SeqCst);
    host.point("announced");
    Ok(announced.filter(|&announced| announced <= covered))
}

/// Returns the lowest bound of the transactions that the snapshot sees as running. A watermark has been announced.
fn scan<H: WatermarkHost>(host: &H, snapshot: &Snapshot<'_>) -> Result<i64, H::Error> {
    let database = host.database();
    let mut least = NONE;
    for proc in host.procs() {
        let holds = loop {
            match proc.holds(snapshot, database) {
                Some(holds) => break holds,
                None => host.nap(),
            }
        };
        least = least.min(holds);
    }
    host.point("procs read");
    // After the procs: a transaction that is prepared is there before it leaves its proc.
    Ok(least.min(host.with_prepared(|all| prepared::holds(all, snapshot, database)).unwrap_or(NONE)))
}

/// Learns of the transactions that were prepared before the server started, once after each start.
fn learn_prepared<H: WatermarkHost>(host: &H) {
    let are_known = &host.prepared_use().are_known;
    if are_known.load(Ordering::Acquire) {
        return;
    }
    let carried = host.carried();
    // This is read after the locks, so that it is greater than the transaction IDs in them.
    let next = host.next_xid();
    let of = |(xid, bound)| Prepared::new(widened(next, xid), bound, host.database_of(xid));
    let carried: Vec<_> = carried.into_iter().map(of).collect();
    host.point("prepared read");
    host.add_prepared(&carried);
    are_known.store(true, Ordering::Release);
}

/// Refuses a snapshot that sees a transaction as running which was prepared before the server started, and committed before any
/// session had learned of it.
fn check_learned<H: WatermarkHost>(host: &H, snapshot: &Snapshot<'_>) -> Result<(), H::Error> {
    let first = host.lock(|state| state.first_xid);
    if snapshot.xmin >= first {
        return Ok(());
    }
    let has_committed = |&xid: &u64| !host.known().is_running(xid) && host.has_committed(xid);
    let committed: Vec<u64> = snapshot.running_before(first).filter(has_committed).collect();
    let is_known = |all: &[Prepared], xid| all.iter().any(|one| one.xid() == Some(xid));
    let are_known = || host.with_prepared(|all| committed.iter().all(|&xid| is_known(all, xid))).unwrap_or(false);
    if committed.is_empty() || are_known() { Ok(()) } else { Err(Refusal::NotYet.into()) }
}
