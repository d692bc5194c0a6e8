//! Stories of lessees.

use crate::layouts::{HOUR, SECOND};
use crate::stories::{A, B, CRASH, FIRST, REPLAY, SECOND_NODE, START, at_each_point, follow, goes_well, make, on};
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

/// A server that has been up for long grants a lease of a kind.
fn granted(kind: usize) -> [Event; 5] {
    [lease(kind), pass(65), lease(kind), pass(3), lease(kind)]
}

/// Memory has room for two leases. The clock goes back to when a lease that gave way had not ended: its worker is not leased again.
#[test]
fn a_lease_that_has_given_way() {
    let others = [pass(20), lease(1), pass(46), lease(2), Event::Step { by: -26 * SECOND }, lease(0), lease(0)];
    let world = goes_well([on(A, granted(0)), on(A, [renew(0)]), on(A, others)]);
    let of_first_kind = world.oracle.leased.iter().filter(|lease| lease.made.kind == 0).count();
    assert_eq!(of_first_kind, 2, "the first one, and its renewal");
}

/// A clock that is ahead grants a lease, and is accepted when it is right again. The lease of the era that is over gives way before
/// one of this era, although it ends later: the worker of that one is not leased again when the clock goes back a little.
#[test]
fn a_lease_of_an_era_that_is_over_gives_way_first() {
    let ahead = [Event::Step { by: HOUR }, lease(0), pass(3), lease(0), Event::Step { by: 100 * SECOND - HOUR }];
    let accepted = [Event::Accept { slot: 0, stop: None }, lease(1), pass(3), lease(1)];
    let others = [pass(12), lease(2), Event::Step { by: -8 * SECOND }, lease(1)];
    let world = goes_well([on(A, granted(0)), on(A, ahead), on(A, accepted), on(A, others)]);
    let kinds: Vec<_> = world.oracle.leased.iter().map(|lease| lease.made.kind).collect();
    assert_eq!(kinds, [0, 0, 1, 2], "the last lessee waits");
}

/// A server is given the number of the pool: it makes no ID in the ticks of a lease.
#[test]
fn a_server_under_the_number_of_the_pool() {
    let restart = Event::Restart { node: SECOND_NODE, preloads: false };
    goes_well([
        on(A, granted(1)),
        on(A, [renew(1), restart]),
        on(A, [3, 20, 30].map(pass).into_iter().flat_map(|pass| [make(0), pass])),
    ]);
}

/// A lessee asks, the session stops anywhere, and the server crashes; the lessee continues at the standby, which lags less than two
/// seconds.
#[test]
fn a_standby_takes_over_while_a_lease_is_granted() {
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

/// A database is created under the OID of another one, whose page said how far the pool reaches: the new one's page has to say it
/// before a lease relies on it.
#[test]
fn a_database_that_takes_the_place_of_another_one() {
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

/// The extension is dropped, and created again after a crash, while the clock is behind: the file knows of the leases.
#[test]
fn an_extension_that_is_created_again() {
    let again = [Event::Recreate { slot: 0, stop: None }, Event::End { slot: 0, commits: true, stop: None }];
    goes_well([
        on(A, granted(1)),
        on(A, [renew(1), Event::Drop { database: 0 }, CRASH, Event::Step { by: -60 * SECOND }, START]),
        on(A, again),
        on(A, granted(1)),
    ]);
}
