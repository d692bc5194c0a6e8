//! Watermarks: no row appears below one, whatever a proc forgets, and in whatever order threads run.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

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

/// The database of the threads.
#[derive(Default)]
struct World {
    next: u64,
    running: Vec<u32>,
    /// The IDs that snapshots see.
    committed: Vec<i64>,
}

/// Some threads write IDs and commit, others read the rows below a watermark. Each row must be read once, in order.
#[test]
fn rows_of_concurrent_threads_are_not_lost() {
    const WRITERS: usize = 3;
    let procs: [ProcTransactions; WRITERS] = Default::default();
    let (announced, world) = (AtomicI64::new(i64::MIN), Mutex::new(World::default()));
    let (is_over, have_written) = (AtomicBool::new(false), AtomicBool::new(false));
    let began = Instant::now();
    let clock = || began.elapsed().as_nanos() as i64;
    procs.iter().for_each(|proc| proc.begin(DATABASE));
    let write = |proc: &ProcTransactions, number: i64| {
        while !is_over.load(Ordering::Relaxed) {
            let xid = {
                let mut world = world.lock().unwrap();
                let xid = world.next;
                world.next += 1;
                world.running.push(xid as u32);
                xid
            };
            let now = loop {
                let now = clock();
                if proc.admit(&announced, now, || {}).is_ok() {
                    break now;
                }
            };
            let mut world = world.lock().unwrap();
            world.running.retain(|running| *running != xid as u32);
            world.committed.push(now * 8 + number);
            drop(world);
            proc.end(Some(xid), || {});
        }
    };
    let read = || {
        let (mut seen, mut last) = (Vec::new(), i64::MIN);
        loop {
            // After the writers have ended, the last rows are read too.
            let is_last = have_written.load(Ordering::SeqCst);
            let (xmax, running, visible) = {
                let world = world.lock().unwrap();
                (world.next, world.running.clone(), world.committed.clone())
            };
            if visible.len() % 4 == 0 {
                thread::sleep(Duration::from_micros(200));
            }
            let now = clock();
            announced.fetch_max(now, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            let xmin = running.iter().min().map_or(xmax, |&xid| xid.into());
            let snapshot = Snapshot { xmin, xmax, running: &running };
            let holds = procs.iter().map(|proc| proc.holds(&snapshot, DATABASE).unwrap_or(i64::MIN)).min();
            let watermark = holds.unwrap_or(NONE).min(now).saturating_mul(8);
            let before = seen.len();
            seen.extend(visible.into_iter().filter(|&id| id > last && id < watermark));
            seen[before..].sort_unstable();
            last = seen.last().copied().unwrap_or(last);
            if is_last {
                return seen;
            }
        }
    };
    let (mut committed, readers) = thread::scope(|scope| {
        let writers: Vec<_> =
            (0..).zip(&procs).map(|(number, proc)| scope.spawn(move || write(proc, number))).collect();
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(read)).collect();
        thread::sleep(Duration::from_millis(300));
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        have_written.store(true, Ordering::SeqCst);
        let seen: Vec<Vec<i64>> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        (world.lock().unwrap().committed.clone(), seen)
    });
    committed.sort_unstable();
    assert!(committed.len() > 100, "only {} rows were written", committed.len());
    for seen in readers {
        assert!(seen == committed, "of {} rows, {} were read", committed.len(), seen.len());
    }
}
