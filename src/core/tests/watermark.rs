//! Watermarks: no row appears below one, whatever a proc forgets.

use std::sync::atomic::{AtomicI64, Ordering};

use flake_core::watermark::{NONE, ProcTransactions, Snapshot, widened};
use proptest::prelude::*;

const DATABASE: u32 = 5;
static NEVER: AtomicI64 = AtomicI64::new(i64::MIN);

/// A snapshot that sees the transactions before this one as ended.
fn seeing(before: u64) -> Snapshot<'static> {
    Snapshot { xmin: before, xmax: before, running: &[] }
}

/// A transaction in a proc, from its first ID on.
fn run(proc: &ProcTransactions, bound: i64, committed: Option<u64>) {
    proc.admit(&NEVER, bound, || {}).unwrap();
    proc.end(committed, || {});
}

#[test]
fn transaction_ids_do_not_wrap_around() {
    let next = 7 << 32 | 5;
    assert_eq!(widened(next, 4), 7 << 32 | 4);
    assert_eq!(widened(next, 5), next);
    assert_eq!(widened(next, 0xffff_fff0), 6 << 32 | 0xffff_fff0);
    let running = [3, 0xffff_fff1];
    let snapshot = Snapshot::new(next, 0xffff_fff0, 4, &running);
    let seen: Vec<_> =
        [(6 << 32 | 0xffff_ffef), (6 << 32 | 0xffff_fff1), (6 << 32 | 0xffff_fff2), 7 << 32 | 3, 7 << 32 | 4]
            .iter()
            .map(|&xid| snapshot.is_running(xid))
            .collect();
    assert_eq!(seen, [false, true, false, true, true]);
    let before = |xid| snapshot.running_before(xid).collect::<Vec<_>>();
    assert_eq!(before(7 << 32 | 4), [7 << 32 | 3, 6 << 32 | 0xffff_fff1]);
    assert_eq!(before(7 << 32 | 3), [6 << 32 | 0xffff_fff1]);
    assert!(before(6 << 32 | 0xffff_fff1).is_empty(), "the running transaction begins at this ID");
    let is_any = |first: u64, last: u64| snapshot.is_any_running(first..=last);
    assert!(is_any(6 << 32, 6 << 32 | 0xffff_fff1) && is_any(6 << 32 | 0xffff_fff2, 7 << 32 | 3));
    assert!(is_any(6 << 32, 7 << 32 | 4) && is_any(7 << 32 | 4, 7 << 32 | 4));
    assert!(!is_any(6 << 32, 6 << 32 | 0xffff_fff0) && !is_any(6 << 32 | 0xffff_fff2, 7 << 32 | 2));
}

#[test]
fn a_transaction_holds_until_it_has_ended_for_the_snapshot() {
    let proc = ProcTransactions::default();
    proc.begin(DATABASE);
    let old = seeing(10);
    assert_eq!(proc.holds(&old, DATABASE), Some(NONE));
    proc.admit(&NEVER, 1000, || {}).unwrap();
    proc.admit(&NEVER, 2000, || {}).unwrap();
    assert_eq!(proc.holds(&old, DATABASE), Some(1000));
    assert_eq!(proc.holds(&old, DATABASE + 1), Some(NONE));
    proc.end(Some(10), || {});
    assert_eq!(proc.holds(&old, DATABASE), Some(1000));
    assert_eq!(proc.holds(&old, DATABASE + 1), Some(NONE));
    assert_eq!(proc.holds(&seeing(11), DATABASE), Some(NONE));
    run(&proc, 5000, None);
    assert_eq!(proc.holds(&old, DATABASE), Some(1000), "what was rolled back is not kept");
    // The proc's next owner is connected to another database.
    proc.begin(DATABASE + 1);
    run(&proc, 9000, Some(11));
    assert_eq!(proc.holds(&old, DATABASE), Some(1000));
    assert_eq!(proc.holds(&old, DATABASE + 1), Some(9000));
}

#[test]
fn no_id_is_admitted_below_an_announced_watermark() {
    let (proc, announced) = (ProcTransactions::default(), AtomicI64::new(1000));
    assert_eq!(proc.admit(&announced, 999, || {}), Err(1000));
    assert_eq!(proc.bound(), NONE);
    proc.admit(&announced, 1000, || {}).unwrap();
    announced.store(3000, Ordering::SeqCst);
    assert_eq!(proc.admit(&announced, 2000, || {}), Err(3000));
    assert_eq!(proc.hold(&announced, 2000, || {}), Err(3000));
    assert_eq!(proc.bound(), 1000);
    proc.hold(&announced, 4000, || {}).unwrap();
    assert_eq!(proc.bound(), 1000);
}

proptest! {
    /// A proc forgets entries, but for every snapshot it holds all transactions that have not ended. With few transactions since,
    /// it holds no more than these.
    #[test]
    fn a_proc_never_holds_too_little(
        // The clock goes back as well.
        steps in prop::collection::vec((-1500..5000_i64, 0..4_u8, any::<bool>()), 1..200),
        snapshots in prop::collection::vec((0..200_u64, 0..4_u64), 1..20),
    ) {
        let proc = ProcTransactions::default();
        let mut all: Vec<(u64, i64, u32)> = Vec::new();
        let (mut bound, mut database) = (0, 1);
        for (xid, (step, other, commits)) in (100..).zip(&steps) {
            bound += step;
            if *other == 0 {
                database = 3 - database;
                proc.begin(database);
            } else {
                proc.begin(database);
            }
            run(&proc, bound, commits.then_some(xid));
            if *commits {
                all.push((xid, bound, database));
            }
        }
        for (at, gap) in snapshots {
            // The snapshot sees one transaction before the last as running.
            let running = [100 + at.saturating_sub(gap) as u32];
            let snapshot = Snapshot { xmin: 100 + at.saturating_sub(gap), xmax: 100 + at, running: &running };
            for database in [1, 2] {
                let of_proc = proc.holds(&snapshot, database).unwrap();
                // The transactions of a proc follow each other, so if one is seen as running, so are all after it.
                let first = all.iter().position(|(xid, _, _)| snapshot.is_running(*xid)
                    && all.iter().filter(|(later, _, _)| later > xid).all(|(later, _, _)| snapshot.is_running(*later)));
                let really = first.map_or(NONE, |first| {
                    all[first..].iter().filter(|one| one.2 == database).map(|one| one.1).min().unwrap_or(NONE)
                });
                prop_assert!(of_proc <= really, "{of_proc} > {really} for {snapshot:?}");
                if first.is_none() {
                    prop_assert_eq!(of_proc, NONE);
                }
            }
        }
    }
}
