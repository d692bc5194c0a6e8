//! Watermarks that a primary publishes in the page of a database, for snapshots of standbys that have replayed the page.
//!
//! A standby cannot see which transactions are open on the primary, so its snapshot needs a proof that it sees all rows below a
//! watermark h. The primary publishes h together with N, the next transaction ID after h's snapshot was taken. A snapshot may use h
//! if it sees that some transaction from N on has ended (`xmax > N`), or that all transactions below N have ended (`xmin >= N`):
//!
//! 1. A transaction that had committed for h's snapshot had its commit record in the WAL before N was read.
//! 2. A transaction ID from N on was assigned later, so the record of its end is later in the WAL. A snapshot that sees this end
//!    was taken after all records of step 1 were replayed, so it sees their rows.
//! 3. The transactions of step 1 have IDs below N. A snapshot for which all of these have ended sees their rows too.
//! 4. All other rows are above h, because a transaction that was running for h's snapshot holds h. A prepared transaction holds it
//!    too, and so does a commit that waits for a synchronous standby, which may show the commit earlier than the primary does.
//! 5. Subtransactions have IDs of their own, which the steps cover. If the list of running transactions overflows, only `xmin` gets
//!    lower. Transaction IDs that a crash loses are assigned again, after N was read.
//! 6. A promoted standby, and a standby of a standby, has the same WAL up to the record, and only the snapshot decides.
//! 7. The publisher assigns a transaction ID from N on and aborts it before it writes the page. So every snapshot that is taken
//!    after the page was replayed can use h, whatever else is open.
//!
//! The page has room for twelve watermarks. The older ones are further apart, so that older snapshots find one too. An
//! acceptance removes all of them: no session makes an ID of the new generation before the page of its database has it.

use super::Snapshot;
use super::ask::ask;
use super::host::{QuerySnapshot, WatermarkHost};
use super::transactions::SessionTransactions;
use crate::ledger::durable::record::{MAX_PUBLISHED, Published};
use crate::ledger::host::{Change, Fault, Page};

/// Publishes the watermark of a snapshot that was just taken. Returns it, or a later one that is published already. Returns None if
/// the clock was accepted in the meantime; the caller then tries again.
pub fn publish<H: WatermarkHost>(
    host: &mut H,
    session: &SessionTransactions,
    snapshot: &impl QuerySnapshot,
) -> Result<Option<i64>, H::Error> {
    let acceptances = host.lock(|state| state.ledger.map(|ledger| ledger.reserved.acceptances));
    let new = Published { watermark: ask(host, session, snapshot)?, next: host.next_xid() };
    host.consume_xid();
    let published = host.change_page(|page| {
        let mut record = match page.record() {
            Ok(record) if Some(record.reserved.acceptances) == acceptances && page.bytes.is_some() => record,
            found => return (Change::Keep, found.map(|_| None)),
        };
        let is_new = add(&mut record.published, new);
        let change =
            if is_new { Change::Write(record.encode(0), record.reserved, record.turns.number()) } else { Change::Keep };
        (change, Ok(record.published.last().map(|one| one.watermark)))
    })?;
    Ok(published?)
}

/// Returns the highest watermark that a snapshot taken in recovery may use, or None if there is none yet.
pub fn replayed<E: From<Fault>>(
    snapshot: &impl QuerySnapshot,
    page: impl FnOnce() -> Result<Page, E>,
) -> Result<Option<i64>, E> {
    if let Some(known) = snapshot.cached_watermark() {
        return Ok(Some(known));
    }
    let record = page()?.record()?;
    let watermark = highest(&record.published, &snapshot.transactions());
    if let Some(watermark) = watermark {
        snapshot.cache_watermark(watermark);
    }
    Ok(watermark)
}

/// Returns the highest watermark below which a snapshot sees all rows.
pub fn highest(published: &[Published], snapshot: &Snapshot<'_>) -> Option<i64> {
    let sees_all = |one: &&Published| snapshot.xmax > one.next || snapshot.xmin >= one.next;
    published.iter().filter(sees_all).map(|one| one.watermark).max()
}

/// Adds a watermark, unless there is one as high that as many snapshots may use. Returns whether it was added.
///
/// Later watermarks are closer together than earlier ones, so that a snapshot of any age finds one that is not much older than
/// itself, however often watermarks are published.
pub fn add(published: &mut Vec<Published>, new: Published) -> bool {
    if published.iter().any(|one| one.watermark >= new.watermark && one.next <= new.next) {
        return false;
    }
    published.retain(|one| one.watermark > new.watermark || one.next < new.next);
    published.push(new);
    published.sort_unstable_by_key(|one| one.watermark);
    if published.len() > MAX_PUBLISHED {
        published.remove(least_needed(published));
    }
    debug_assert!(
        published.len() <= MAX_PUBLISHED
            && published.is_sorted_by(|one, other| one.watermark < other.watermark && one.next < other.next),
        "a higher watermark is for later snapshots"
    );
    true
}

/// Returns the watermark whose neighbors are closest together in proportion to their age. The first and the last one stay.
fn least_needed(published: &[Published]) -> usize {
    let age = |at: usize| published[published.len() - 1].watermark.abs_diff(published[at].watermark) as f64;
    let growth = |&at: &usize| age(at - 1) / age(at + 1).max(1.0);
    (1..published.len() - 1).min_by(|one, other| growth(one).total_cmp(&growth(other))).unwrap_or(0)
}
