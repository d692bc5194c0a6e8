//! Stories of lessees.

use crate::layouts::{HOUR, SECOND};
use crate::stories::{
    A, ACCEPT, B, CRASH, FIRST, LOSE_FILE, REPLAY, SECOND_NODE, START, again, at_each_point, follow, goes_well, make,
    on,
};
use crate::story::Event;

const fn lease(kind: usize) -> Event {
    Event::Lease { slot: 0, kind, renews: None, stop: None }
}

const fn renew(kind: usize) -> Event {
    Event::Lease { slot: 0, kind, renews: Some(0), stop: None }
}

const fn pass(seconds: i64) -> Event {
    Event::Pass { by: seconds * SECOND }
}

/// A server that has been running for long grants a lease of a kind.
fn granted(kind: usize) -> [Event; 2] {
    [pass(71), lease(kind)]
}

/// Memory has room for two leases. The clock goes back to before the end of a lease that gave way. Its worker is not leased again.
#[test]
fn a_lease_that_gave_way_is_not_granted_again() {
    let others = [pass(20), lease(1), pass(46), lease(2), Event::Step { by: -26 * SECOND }, lease(0), lease(0)];
    let world = goes_well([on(A, granted(0)), on(A, [renew(0)]), on(A, others)]);
    let of_first_kind = world.oracle.leased.iter().filter(|lease| lease.made.kind == 0).count();
    assert_eq!(of_first_kind, 2, "the first one, and its renewal");
}

/// The server loses its file, and its clock is set back. The page has the time of the leases.
#[test]
fn leases_after_a_lost_file() {
    let later = [pass(45), lease(1), pass(3), lease(1), pass(3), lease(1)];
    let lost = [LOSE_FILE, Event::Step { by: -120 * SECOND }];
    goes_well([on(A, granted(1)), on(A, lost), on(A, granted(1)), on(A, later)]);
}

/// A clock that is ahead grants a lease, and is accepted when it is right again. The lease of the era that is over gives way before
/// one of this era, although it ends later: the worker of that one is not leased again when the clock goes back a little.
#[test]
fn a_lease_of_an_era_that_is_over_gives_way_first() {
    let ahead = [Event::Step { by: HOUR }, lease(0), Event::Step { by: 100 * SECOND - HOUR }];
    let accepted = [ACCEPT, lease(1)];
    let others = [pass(12), lease(2), Event::Step { by: -8 * SECOND }, lease(1)];
    let world = goes_well([on(A, granted(0)), on(A, ahead), on(A, accepted), on(A, others)]);
    let kinds: Vec<_> = world.oracle.leased.iter().map(|lease| lease.made.kind).collect();
    assert_eq!(kinds, [0, 0, 1, 2], "the last lessee waits");
}

/// The clock was an hour ahead while a lease was granted. Once the clock is accepted, leases begin after the time that the pool had before.
#[test]
fn leases_after_a_clock_that_was_ahead() {
    let ahead = [Event::Step { by: HOUR }, lease(1), Event::Step { by: -HOUR }];
    let world = goes_well([on(A, granted(1)), on(A, ahead), on(A, [ACCEPT, pass(70), lease(1)])]);
    assert_eq!(world.oracle.leased.len(), 3, "before, ahead, and after");
}

/// The clock was an hour ahead, and is accepted: what pages said of the hour does not hold for the leases after that. A standby that
/// has replayed all takes over, and its clock is behind.
#[test]
fn a_standby_takes_over_after_a_clock_was_accepted() {
    let ahead = [Event::Step { by: HOUR }, lease(1), Event::Step { by: -HOUR }];
    goes_well([
        on(B, [follow(FIRST)]),
        on(A, granted(1)),
        on(A, ahead),
        on(A, [ACCEPT, pass(70), make(0), lease(1)]),
        on(B, [REPLAY, Event::Step { by: -65 * SECOND }, Event::Promote]),
        on(A, [CRASH]),
        on(B, granted(1)),
        on(B, [renew(1)]),
    ]);
}

/// A server is given the pool's number. It makes no ID in the ticks of a lease.
#[test]
fn a_server_under_the_pools_number_makes_no_id_in_a_leased_tick() {
    let restart = Event::Restart { node: SECOND_NODE, preloads: false };
    goes_well([
        on(A, granted(1)),
        on(A, [renew(1), restart]),
        on(A, [3, 20, 30].map(pass).into_iter().flat_map(|pass| [make(0), pass])),
    ]);
}

/// A session stops anywhere while it grants a lease, and the server crashes. The lessee continues at a standby that lags by less
/// than two seconds.
#[test]
fn a_lease_granted_during_a_failover_is_granted_once() {
    at_each_point(|stop| {
        let renewal = Event::Lease { slot: 0, kind: 1, renews: Some(0), stop: Some(stop) };
        let promote = on(B, [REPLAY, Event::Step { by: -40 * SECOND }, Event::Promote]);
        goes_well([
            on(B, [follow(FIRST)]),
            on(A, granted(1)),
            on(A, [pass(8), renewal]),
            promote,
            on(A, [Event::GoOn { slot: 0, stop: None }, renew(1), CRASH]),
            on(B, granted(1)),
            on(B, [renew(1)]),
        ])
        .stops
    });
}

/// A database is created under the OID of another one, whose page said how far the pool reaches. The new page must say so too
/// before a lease ends in that time.
#[test]
fn a_new_database_under_an_old_oid_learns_of_the_pool_before_it_leases() {
    goes_well([
        on(B, [follow(FIRST), Event::Step { by: -40 * SECOND }]),
        on(A, granted(1)),
        on(A, [Event::NewDatabase { database: 0 }, renew(1)]),
        on(B, [REPLAY, Event::Promote]),
        on(A, [CRASH]),
        on(B, granted(1)),
        on(B, [renew(1)]),
    ]);
}

/// The extension is dropped, and created again after a crash, while the clock is behind. The file knows the pool's mark.
#[test]
fn an_extension_that_is_created_again_knows_earlier_leases() {
    let again = [Event::Recreate { slot: 0, stop: None }, Event::End { slot: 0, commits: true, stop: None }];
    goes_well([
        on(A, granted(1)),
        on(A, [renew(1), Event::Drop { database: 0 }, CRASH, Event::Step { by: -60 * SECOND }, START]),
        on(A, again),
        on(A, granted(1)),
    ]);
}

/// While a session begins the pool, another one makes IDs in another database. After a crash the file knows their time, so nobody
/// makes them in the first database, even with a clock that is set back.
#[test]
fn time_that_is_granted_while_the_pool_begins_is_in_the_file() {
    let in_database = |database| Event::Connect { slot: 1, database };
    at_each_point(|stop| {
        let begins = Event::Lease { slot: 0, kind: 1, renews: None, stop: Some(stop) };
        goes_well([
            on(A, [in_database(1), pass(1), begins, make(1), Event::GoOn { slot: 0, stop: None }]),
            on(A, [CRASH, START, in_database(0)]),
            on(A, again(0, false)),
        ])
        .stops
    });
}

/// A worker is leased while the clock is ahead. The clock is accepted for the pool, and then the flush of the server's own acceptance
/// fails, so this record may be on disk. It must not lower horizons that are returned before a crash.
#[test]
fn an_acceptance_that_failed_after_the_pools_recalls_nothing() {
    let ask = Event::Ask { slot: 1, stop: None };
    let (full, empty) = (Event::DiskFails(true), Event::DiskFails(false));
    at_each_point(|stop| {
        let fails = [Event::Accept { slot: 0, stop: Some(stop) }, full, Event::GoOn { slot: 0, stop: None }, empty];
        goes_well([
            on(A, [make(0), Event::Step { by: HOUR }, make(0), ask, lease(1), Event::SetRight, pass(4)]),
            on(A, fails),
            on(A, [ask, CRASH, START, make(0)]),
        ])
        .stops
    });
}
