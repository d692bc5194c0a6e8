//! Leases of one server: how the pool's time and the leases in memory keep lessees apart.

use flake_core::ledger::host::Page;
use flake_core::ledger::marks::Author;
use flake_core::ledger::pool::{AHEAD, Claim, Decision, FIRST, Holder, LONGEST, Lease, Pool, Refusal, Request};
use flake_core::ledger::protocol;
use flake_core::{IdSource, Layout, Lots, Part, built_in};

mod alone;
use alone::{Alone, HOUR, NOON, SECOND};

/// A lessee's database, and the limit of its leases.
#[derive(Clone, Copy)]
struct Asking {
    layout: &'static Layout,
    database: u32,
    most: usize,
}

fn twitter() -> Asking {
    Asking { layout: built_in("twitter").unwrap(), database: 5, most: 64 }
}

fn ask(alone: &mut Alone, Asking { layout, database, most }: Asking, token: Option<u64>) -> Decision {
    alone.chance.set(alone.chance.get() + 1);
    let part = protocol::part(alone).unwrap();
    let lots = Lots::new(layout, Part::of_lessees(part.node(), part.turn())).unwrap();
    let by = Holder::NOBODY;
    let request = Request { key: layout.key(), ticks: layout.ticks(), lots, database, most, token, by };
    protocol::lease(alone, &request).unwrap()
}

/// Returns the lot, the token and the ticks of a lease.
fn granted(alone: &mut Alone, asking: Asking, token: Option<u64>) -> (u64, u64, std::ops::Range<u64>) {
    match ask(alone, asking, token) {
        Decision::Granted { lot, token, from, to, .. } => (lot, token, from..to),
        refused => panic!("{refused:?}"),
    }
}

fn release(alone: &mut Alone, Asking { layout, database, .. }: Asking, token: u64, at: Option<i64>) -> bool {
    protocol::release(alone, Claim { key: layout.key(), database, token }, at).unwrap()
}

fn server() -> Alone {
    let mut alone = Alone::new();
    protocol::record_mark(&mut alone).unwrap();
    alone
}

/// All leases of before lie below the pool's mark, which is in the file and in the page.
#[test]
fn leases_after_a_restart_begin_above_the_mark() {
    for loses_file in [false, true] {
        let mut alone = server();
        let (lot, .., first) = granted(&mut alone, twitter(), None);
        let mut again = alone.restarted();
        if loses_file {
            again.file.replace(None);
        }
        assert_eq!(ask(&mut again, twitter(), None), Decision::Refused(Refusal::Starting, AHEAD));
        again.at(NOON + AHEAD);
        let (next, .., ticks) = granted(&mut again, twitter(), None);
        assert!(next == lot && first.end < ticks.start, "{first:?} {ticks:?}");
    }
    let mut idle = server().restarted();
    let _ = granted(&mut idle, twitter(), None);
}

/// Nobody has leased anything of the new part.
#[test]
fn a_new_primary_leases_at_once() {
    let mut old = server();
    let (lot, ..) = granted(&mut old, twitter(), None);
    let mut new = old.promoted();
    let part = protocol::part(&mut new).unwrap();
    assert_eq!(part.turn(), 2);
    assert_eq!(granted(&mut new, twitter(), None).0, lot, "the same lot of another part");
}

/// Each database has a page of its own, and all requests come at the same instants.
#[test]
fn forty_databases_lease_after_a_restart() {
    let mut alone = server();
    alone.leases.replace(vec![Lease::NONE; 50]);
    let mut pages = vec![alone.page.clone(); 40];
    let all = |alone: &mut Alone, pages: &mut Vec<Page>, ask: &mut dyn FnMut(&mut Alone, Asking)| {
        for (database, page) in (1..).zip(pages) {
            alone.page = page.clone();
            ask(alone, Asking { database, ..twitter() });
            *page = alone.page.clone();
        }
    };
    all(&mut alone, &mut pages, &mut |alone, asking| _ = granted(alone, asking, None));
    let mut again = alone.restarted();
    again.leases.replace(vec![Lease::NONE; 50]);
    all(&mut again, &mut pages, &mut |alone, asking| {
        assert!(matches!(ask(alone, asking, None), Decision::Refused(Refusal::Starting, 0..=AHEAD)));
    });
    again.at(NOON + AHEAD);
    let mut tokens = Vec::new();
    all(&mut again, &mut pages, &mut |alone, asking| tokens.push(granted(alone, asking, None).1));
    // They renew their leases for two minutes, and each grant lies in the page of its database.
    for second in 1..120 {
        again.at(NOON + AHEAD + second * SECOND);
        let mut number = 0;
        all(&mut again, &mut pages, &mut |alone, asking| {
            let (_, token, ticks) = granted(alone, asking, Some(tokens[number]));
            let until = protocol::marks_of(&alone.page).unwrap().until();
            assert!(asking.layout.start_of(ticks.end) <= until);
            tokens[number] = token;
            number += 1;
        });
    }
}

#[test]
fn a_token_is_used_once() {
    let mut alone = server();
    let (lot, first, ticks) = granted(&mut alone, twitter(), None);
    let lost = Decision::Refused(Refusal::Lost, 0);
    for other in [Asking { database: 6, ..twitter() }, Asking { layout: built_in("tsid").unwrap(), ..twitter() }] {
        assert_eq!(ask(&mut alone, other, Some(first)), lost);
    }
    let (same, second, next) = granted(&mut alone, twitter(), Some(first));
    assert_eq!((same, next.start), (lot, ticks.end), "a renewal goes on");
    assert!(second != first && (1..1 << 63).contains(&second));
    for used in [first, 0] {
        assert_eq!(ask(&mut alone, twitter(), Some(used)), lost);
    }
    assert!(!release(&mut alone, twitter(), first, None));
    assert!(release(&mut alone, twitter(), second, None));
    assert!(!release(&mut alone, twitter(), second, None));
    assert_eq!(ask(&mut alone, twitter(), Some(second)), lost);
}

/// `si` as one of 32 nodes has two lots, and a database gets one.
#[test]
fn a_released_lot_is_leased_after_the_last_tick_that_was_used() {
    let one = |database| Asking { layout: built_in("si").unwrap(), database, most: 64 };
    let mut alone = server();
    alone.node = flake_core::Node::new(3, 32).unwrap();
    let mut alone = alone.restarted();
    let (lot, token, ticks) = granted(&mut alone, one(1), None);
    assert_eq!(ask(&mut alone, one(1), None), Decision::Refused(Refusal::Exhausted, FIRST));
    let last = ticks.start + 700;
    alone.at(one(1).layout.start_of(last));
    assert!(release(&mut alone, one(1), token, Some(one(1).layout.start_of(last + 1))));
    alone.at(one(1).layout.start_of(last + 1));
    assert!(
        matches!(ask(&mut alone, one(1), None), Decision::Granted { lot: 1, .. }),
        "the other one was never leased"
    );
    let (again, token, next) = granted(&mut alone, one(2), None);
    assert_eq!((again, next.start), (lot, last + 1));
    // A renewal that was not used ends where it begins.
    let (_, token, renewed) = granted(&mut alone, one(2), Some(token));
    assert!(release(&mut alone, one(2), token, None));
    alone.at(one(2).layout.start_of(renewed.start));
    assert_eq!(granted(&mut alone, one(2), None).2.start, renewed.start);
}

/// A lessee names the last tick that it has used, of another lot and before it got this one. The lot's lessee before it has used later
/// ticks, to where the clock goes back.
#[test]
fn a_release_gives_back_nothing_of_an_earlier_lessee() {
    let one = |database| Asking { layout: built_in("si").unwrap(), database, most: 64 };
    for renews in [false, true] {
        let mut alone = server();
        alone.node = flake_core::Node::new(3, 32).unwrap();
        let mut alone = alone.restarted();
        let (lot, _, ticks) = granted(&mut alone, one(1), None);
        let _ = granted(&mut alone, one(2), None);
        alone.at(NOON + FIRST + SECOND);
        let (again, mut token, _) = granted(&mut alone, one(1), None);
        assert_eq!(again, lot);
        if renews {
            token = granted(&mut alone, one(1), Some(token)).1;
        }
        assert!(release(&mut alone, one(1), token, Some(NOON)));
        alone.at(NOON + FIRST - SECOND);
        if let Decision::Granted { lot: found, from, .. } = ask(&mut alone, one(1), None) {
            assert!(found != lot || from >= ticks.end, "tick {from} is leased again, {renews}");
        }
    }
}

#[test]
fn a_database_has_so_many_leases_of_all_layouts() {
    let mut alone = server();
    let most = |most, layout| Asking { most, layout: built_in(layout).unwrap(), ..twitter() };
    let (_, token, _) = granted(&mut alone, most(2, "twitter"), None);
    assert!(matches!(ask(&mut alone, most(0, "twitter"), Some(token)), Decision::Refused(Refusal::Limited, _)));
    alone.at(NOON + SECOND);
    let (_, second, _) = granted(&mut alone, most(2, "leaf"), None);
    let limited = Decision::Refused(Refusal::Limited, FIRST - SECOND);
    assert_eq!(ask(&mut alone, most(2, "tsid"), None), limited, "until the first one ends");
    let _ = granted(&mut alone, Asking { database: 6, ..most(1, "tsid") }, None);
    let _ = granted(&mut alone, most(2, "twitter"), Some(token));
    assert!(release(&mut alone, most(2, "leaf"), second, None));
    let _ = granted(&mut alone, most(2, "tsid"), None);
}

/// The memory here has four entries. A lease that has ended gives way to one of another lot. The clock goes back to before that end:
/// the lot is not leased again before it, although a lease that was released has left an entry.
#[test]
fn a_lease_that_gave_way_is_not_granted_again() {
    let asking = |database| Asking { database, ..twitter() };
    let mut alone = server();
    let ticks: Vec<_> = (1..=4).map(|database| granted(&mut alone, asking(database), None)).collect();
    assert!(matches!(ask(&mut alone, asking(5), None), Decision::Refused(Refusal::Full, _)));
    let renewed: Vec<_> = ticks[1..]
        .iter()
        .zip(2..)
        .map(|((_, token, _), database)| granted(&mut alone, asking(database), Some(*token)))
        .collect();
    alone.at(NOON + FIRST + SECOND);
    let of_leaf = Asking { layout: built_in("leaf").unwrap(), ..asking(5) };
    let (_, token, _) = granted(&mut alone, of_leaf, None);
    alone.at(NOON + SECOND);
    assert!(release(&mut alone, of_leaf, token, Some(NOON)));
    assert!(release(&mut alone, asking(2), renewed[0].1, Some(NOON)));
    match ask(&mut alone, asking(1), None) {
        Decision::Granted { lot, from, .. } => assert!(lot != ticks[0].0 || from >= ticks[0].2.end),
        refused => assert!(matches!(refused, Decision::Refused(Refusal::Clock, _)), "{refused:?}"),
    }
}

/// The memory has four entries. The first lease has ended and gives way. Then the clock goes back, and a lease gives way that was
/// released, and so has ended earlier. The lot of the first lease is not leased again before that lease's end.
#[test]
fn what_gives_way_later_ends_nothing_earlier() {
    let asking = |database| Asking { database, ..twitter() };
    let other = |layout, database| Asking { layout: built_in(layout).unwrap(), ..asking(database) };
    let mut alone = server();
    let (lot, _, ticks) = granted(&mut alone, asking(1), None);
    let renewed = [2, 3, 4].map(|database| {
        let (_, token, _) = granted(&mut alone, asking(database), None);
        (database, granted(&mut alone, asking(database), Some(token)).1)
    });
    alone.at(NOON + FIRST + SECOND);
    let _ = granted(&mut alone, other("leaf", 5), None);
    alone.at(NOON + SECOND);
    for (database, token) in &renewed[..2] {
        assert!(release(&mut alone, asking(*database), *token, Some(NOON)));
    }
    let _ = granted(&mut alone, other("tsid", 6), None);
    let (again, _, next) = granted(&mut alone, asking(1), None);
    assert!(again != lot || next.start >= ticks.end, "{ticks:?} and {next:?} of lot {lot}");
}

#[test]
fn a_refusal_has_a_reason() {
    let mut alone = server();
    let _ = granted(&mut alone, twitter(), None);
    alone.at(NOON - HOUR);
    assert!(matches!(ask(&mut alone, twitter(), None), Decision::Refused(Refusal::Clock, HOUR..)));
    let mut again = alone.restarted();
    assert!(matches!(ask(&mut again, twitter(), None), Decision::Refused(Refusal::Clock, HOUR..)));
    protocol::accept(&mut again).unwrap();
    let _ = granted(&mut again, twitter(), None);
}

#[test]
fn renewals_do_not_reach_further_and_further() {
    let mut alone = server();
    let (_, mut token, _) = granted(&mut alone, twitter(), None);
    for second in 1..100 {
        alone.at(NOON + second * SECOND);
        if let Decision::Granted { token: new, until, .. } = ask(&mut alone, twitter(), Some(token)) {
            assert!(until <= NOON + second * SECOND + LONGEST);
            token = new;
        }
    }
}

#[test]
fn a_release_lengthens_no_lease() {
    let mut alone = server();
    let one = |database| Asking { database, layout: built_in("si").unwrap(), ..twitter() };
    alone.node = flake_core::Node::new(3, 32).unwrap();
    let mut alone = alone.restarted();
    let (lot, token, _) = granted(&mut alone, one(1), None);
    alone.at(NOON + 5 * SECOND);
    assert!(release(&mut alone, one(1), token, Some(NOON + HOUR)));
    alone.at(NOON + FIRST);
    let _ = granted(&mut alone, one(1), None);
    assert_eq!(granted(&mut alone, one(2), None).0, lot);
}

/// Another session has extended the pool's time since, and its page is another one.
#[test]
fn a_lease_ends_in_time_that_is_in_the_page_of_its_database() {
    let me = Author { part: (5, 16), incarnation: 1, start: 1 };
    let then = Pool::begin(me, NOON - HOUR, None).extended(NOON).unwrap();
    let (layout, mut leases, mut pool) = (twitter().layout, [Lease::NONE; 4], then);
    let lots = Lots::new(layout, Part::of_lessees(flake_core::Node::new(0, 2).unwrap(), 1)).unwrap();
    let (key, ticks, by) = (layout.key(), layout.ticks(), Holder::NOBODY);
    let first = Request { key, ticks, lots, database: 5, most: 64, token: None, by };
    assert!(matches!(pool.lease(&mut leases, &first, NOON + 9 * SECOND, 1, &then), Decision::Granted { .. }));
    let now = NOON + 15 * SECOND;
    let mut pool = pool.extended(now).unwrap();
    let renewal = Request { token: Some(1), ..first };
    let Decision::Granted { until, .. } = pool.lease(&mut leases, &renewal, now, 2, &then) else { panic!("no lease") };
    assert_eq!(until, NOON + AHEAD);
}
