//! Promotions: each timeline has another part of the node's IDs, so a new primary begins at once, whatever the old one does.

use std::collections::HashSet;

use flake_core::ledger::host::{Fault, Server};
use flake_core::ledger::marks::Author;
use flake_core::ledger::part_time::{AHEAD, FAR};
use flake_core::ledger::protocol::{self, Grant};
use flake_core::ledger::record::newest;
use flake_core::ledger::state::{Facts, Ledger};
use flake_core::ledger::used::Used;
use flake_core::{Answer, Lanes, Layout, Part, Place, Resumable, TURNS, built_in};

mod alone;
mod facts;
use alone::{Alone, HOUR, NOON, SECOND, Trouble};
use facts::{ME, PART, facts, file, node, of, on};

#[test]
fn a_new_timeline_has_another_part_and_the_same_one_keeps_its_part() {
    let known = file(of(ME, Used::before(NOON)), None);
    let part = |beginnings: Facts<'_>| {
        let ledger = Ledger::begin(&beginnings);
        assert_eq!(ledger.part().number(), ledger.me.part);
        (ledger.part(), ledger.is_promoted)
    };
    for turn in 0..4 {
        assert_eq!(part(facts(Some(&known))), (Part::in_turn(node(0, 2), 1), false));
        let promoted = Facts { turns: on(2, turn), ..facts(Some(&known)) };
        assert_eq!(part(promoted), (Part::in_turn(node(0, 2), turn), true));
        // The first file of a server.
        assert_eq!(part(Facts { turns: on(1, turn), ..facts(None) }), (Part::in_turn(node(0, 2), turn), false));
        // The turn is the timeline's, and so it stays when the number or the count of nodes changes.
        for own in [node(1, 2), node(0, 3), node(2, 3)] {
            assert_eq!(part(Facts { node: own, ..facts(Some(&known)) }), (Part::in_turn(own, 1), false));
        }
    }
}

/// However far ahead it is, and whoever wrote it.
#[test]
fn a_mark_of_another_part_does_not_concern_a_ledger() {
    let opened = Ledger::begin(&facts(None)).granted(NOON, NOON + 1).unwrap();
    for part in (0..16).filter(|part| *part != PART.0) {
        let others = of(Author { part: (part, 16), incarnation: 9, start: 8 }, Used::before(NOON + HOUR));
        let read = opened.having_read(&others);
        assert_eq!(read, opened, "{part}");
    }
}

#[test]
fn only_ids_of_an_earlier_primary_show_that_the_clock_is_behind() {
    let known = file(of(ME, Used::before(NOON)), None);
    let new = Ledger::begin(&Facts { turns: on(2, 2), ..facts(Some(&known)) });
    for part in (0..2).flat_map(|id| (0..TURNS).map(move |turn| Part::in_turn(node(id, 2), turn).number().0)) {
        let page = of(Author { part: (part, 16), ..ME }, Used::before(NOON + HOUR));
        let is_earlier = [0, 1, 3].contains(&part);
        assert_eq!(new.behind(&page, NOON), is_earlier.then_some(NOON + HOUR - AHEAD), "{part}");
        // It is said once, before the first window.
        let granted = new.granted(NOON + SECOND, NOON + SECOND + 1).unwrap();
        assert_eq!(granted.behind(&page, NOON + SECOND), None, "{part}");
    }
}

fn twitter() -> &'static Layout {
    built_in("twitter").unwrap()
}

fn session(alone: &mut Alone) -> Resumable<&'static Layout> {
    let part = protocol::part(alone).unwrap();
    let place = Place::find(alone, &twitter(), Lanes::new(twitter(), part).unwrap(), 0, 1).unwrap();
    Resumable::begin(alone, twitter(), &place).unwrap()
}

/// Asks a session for an ID at an instant. It admits none below an announced horizon.
fn ask(alone: &mut Alone, session: &mut Resumable<&Layout>, now: i64) -> Answer {
    alone.at(now);
    let admit = |host: &mut Alone| {
        let announced = host.shared().announced.load(std::sync::atomic::Ordering::SeqCst);
        (now, if now < announced { Err(announced) } else { Ok(()) })
    };
    session.next(alone, admit, || 0).unwrap()
}

fn makes(alone: &mut Alone, session: &mut Resumable<&Layout>, now: i64) -> Option<u64> {
    match ask(alone, session, now) {
        Answer::Issue(id) => Some(id),
        _ => None,
    }
}

/// A server that makes IDs at noon, and has been running for an hour.
fn primary() -> (Alone, Resumable<&'static Layout>) {
    let mut alone = Alone::new();
    alone.at(NOON - HOUR);
    protocol::record_mark(&mut alone).unwrap();
    let mut own = session(&mut alone);
    assert!(makes(&mut alone, &mut own, NOON).is_some());
    (alone, own)
}

/// A standby of a server, with its file and its page as they are now.
fn standby(of: &Alone) -> Alone {
    let mut new = Alone::new();
    (new.page, new.timelines) = (of.page.clone(), of.timelines.clone());
    new.file.replace(of.file.borrow().clone());
    new.chance.set(of.chance.get() + 1000);
    new
}

/// The first primary makes IDs beside the others. Their clocks show times that it has used, because its own clock is ahead.
#[test]
fn an_old_primary_and_four_new_ones_have_no_id_in_common() {
    let (old, own) = primary();
    let mut servers = vec![(old, own)];
    for _ in 0..3 {
        let mut new = standby(&servers.last().unwrap().0).promoted();
        new.at(NOON - 60 * SECOND);
        let own = session(&mut new);
        servers.push((new, own));
    }
    let mut made = HashSet::new();
    for now in (0..4000).map(|ms| NOON - 59 * SECOND + 20_000 * ms) {
        for (number, (server, own)) in servers.iter_mut().enumerate() {
            // The first server was at noon already.
            if number > 0 || now > NOON {
                let id = makes(server, own, now).unwrap_or_else(|| panic!("server {number} waits at {now}"));
                assert!(made.insert(id), "{id} of server {number}");
            }
        }
    }
    let parts: Vec<_> = servers.iter_mut().map(|(server, _)| protocol::part(server).unwrap().turn()).collect();
    assert_eq!(parts, [1, 2, 3, 0]);
    // The fifth has the first one's part, and counts what it knows of it.
    let mut fifth = standby(&servers[3].0).promoted();
    fifth.at(NOON);
    let mut own = session(&mut fifth);
    assert_eq!(protocol::part(&mut fifth).unwrap().turn(), 1);
    assert_eq!(makes(&mut fifth, &mut own, NOON), None);
    assert_eq!(makes(&mut fifth, &mut own, NOON + AHEAD - 1), None);
    assert!(makes(&mut fifth, &mut own, NOON + AHEAD).is_some());
}

/// The marks of the old primary's part are far ahead, in the file as well as in the page.
#[test]
fn a_promoted_server_makes_an_id_at_once() {
    let (mut old, mut own) = primary();
    assert!(makes(&mut old, &mut own, NOON + HOUR).is_some());
    for has_file in [true, false] {
        let mut new = standby(&old).promoted();
        if !has_file {
            new.file.replace(None);
        }
        new.at(NOON + 500);
        assert!(matches!(protocol::grant(&mut new, NOON + 1000, NOON + 2000, false), Ok(Grant::Window(..))));
        let mut own = session(&mut new);
        assert!(makes(&mut new, &mut own, NOON + 1000).is_some());
        assert_eq!(protocol::wait_of_start(&new, NOON + 2 * HOUR), 0, "nothing was closed because of the promotion");
        // The next primaries need the old one's mark, so the new one keeps it.
        for marks in [newest(new.file.borrow().as_ref().unwrap()).unwrap().0.0, protocol::marks_of(&new.page).unwrap()]
        {
            assert!(marks.of(PART).is_some_and(|mark| mark.used.includes(NOON + HOUR, NOON + HOUR + 1)), "{marks:?}");
            assert!(
                marks.of((2, 16)).is_some_and(|mark| mark.used.includes(NOON + 1000, NOON + 1000 + AHEAD)),
                "{marks:?}"
            );
        }
    }
}

/// Sessions wait for it, because it comes from the promotion and not from a clock.
#[test]
fn a_promoted_server_makes_its_first_id_above_announced_horizons() {
    let (mut old, _) = primary();
    old.at(NOON + SECOND);
    assert_eq!(protocol::bind(&mut old), Ok(NOON + SECOND));
    let bound = protocol::marks_of(&old.page).unwrap().bound.instant;
    assert!(NOON + SECOND < bound && bound <= NOON + SECOND + AHEAD, "{bound}");
    for has_file in [true, false] {
        let mut new = standby(&old).promoted();
        if !has_file {
            new.file.replace(None);
        }
        new.at(NOON + SECOND);
        let mut own = session(&mut new);
        let Some((until, _)) = ask(&mut new, &mut own, NOON + SECOND + 1000).wait() else { panic!("an ID is made") };
        assert_eq!((until, protocol::wait_of_start(&new, until)), (bound, FAR));
        assert_eq!(protocol::wait_of_start(&new, bound + 1), 0);
        assert_eq!(makes(&mut new, &mut own, bound - 1), None);
        assert!(makes(&mut new, &mut own, bound).is_some());
    }
}

/// The page of the first session's database has no bound, because nobody has written there since horizons were asked for.
#[test]
fn sessions_wait_for_horizons_that_another_database_knows() {
    let (mut old, _) = primary();
    let first = old.page.clone();
    old.at(NOON + SECOND);
    protocol::bind(&mut old).unwrap();
    let mut new = standby(&old).promoted();
    new.file.replace(None);
    let second = std::mem::replace(&mut new.page, first);
    new.at(NOON + SECOND);
    let mut own = session(&mut new);
    assert!(makes(&mut new, &mut own, NOON + SECOND + 1000).is_some());
    let bound = protocol::marks_of(&second).unwrap().bound.instant;
    new.page = second;
    let mut own = session(&mut new);
    let Some((until, _)) = ask(&mut new, &mut own, NOON + SECOND + 2000).wait() else { panic!("an ID is made") };
    assert_eq!((until, protocol::wait_of_start(&new, until)), (bound, FAR));
}

/// A session asks for a horizon in a database whose page does not have the bound of the old primary, before it reads one that does.
#[test]
fn horizons_that_only_the_file_knows_bind_a_promoted_server() {
    let (mut old, _) = primary();
    let of_another = old.page.clone();
    old.at(NOON + SECOND);
    protocol::bind(&mut old).unwrap();
    let bound = protocol::marks_of(&old.page).unwrap().bound.instant;
    let mut new = standby(&old).promoted();
    new.page = of_another;
    new.at(NOON + SECOND);
    protocol::bind(&mut new).unwrap();
    let mut own = session(&mut new);
    assert_eq!(makes(&mut new, &mut own, bound - 1), None);
    assert!(makes(&mut new, &mut own, bound).is_some());
}

/// It leaves the file and the page behind, and begins at timeline 1 again.
#[test]
fn ids_after_pg_upgrade_are_above_the_last_value() {
    let (old, _) = primary();
    let last_value = old.page.last_value.unwrap();
    assert_eq!(last_value, NOON + AHEAD);
    let mut new = Alone::new();
    new.page.last_value = Some(last_value);
    new.at(NOON + SECOND);
    let mut own = session(&mut new);
    assert_eq!(protocol::part(&mut new).unwrap().number(), PART);
    let Some((until, _)) = ask(&mut new, &mut own, NOON + SECOND).wait() else { panic!("an ID is made") };
    assert_eq!((until, protocol::wait_of_start(&new, until)), (last_value, FAR));
    assert_eq!(makes(&mut new, &mut own, last_value - 1), None);
    assert!(makes(&mut new, &mut own, last_value).is_some());
    // The value stands for all parts, whichever turn the server has later.
    let promoted = standby(&new).promoted();
    let marks = protocol::marks_of(&promoted.page).unwrap();
    assert_eq!(marks.used_for(Author { part: (2, 16), ..ME }, None).until(), last_value);
}

/// pg_upgrade begins with timeline 1 again. The old cluster's primary of timeline 1 may still run.
#[test]
fn a_cluster_that_was_upgraded_after_a_promotion_takes_another_turn() {
    let (old, _) = primary();
    let mut successor = standby(&old).promoted();
    let _ = session(&mut successor);
    protocol::record_mark(&mut successor).unwrap();
    let mut new = Alone::new();
    (new.page.last_value, new.page.turns) = (successor.page.last_value, successor.page.turns);
    new.at(NOON + HOUR);
    assert_eq!(protocol::part(&mut new).unwrap().turn(), 3);
    // The next promotion is to timeline 2, as the first one was.
    protocol::record_mark(&mut new).unwrap();
    let mut next = standby(&new).promoted();
    assert_eq!(protocol::part(&mut next).unwrap().turn(), 0);
}

/// The history is lost. The file or the page says which turn the timeline before had, or a superuser accepts the turn.
#[test]
fn without_a_history_the_turn_is_recorded_accepted_or_unknown() {
    let (mut old, _) = primary();
    protocol::record_mark(&mut old).unwrap();
    let on_5 = |of: &Alone| {
        let mut new = standby(of);
        new.timelines = vec![1, 5];
        new
    };
    let turn = |mut server: Alone| protocol::part(&mut server).map(Part::turn);
    assert_eq!(turn(on_5(&old)), Ok(2));
    let unknown = || {
        let mut new = on_5(&old);
        new.has_history = false;
        new
    };
    assert_eq!(turn(unknown()), Err(Trouble::Fault(Fault::Turn(5))));
    // The file's record is lost too, and the history is cut short.
    let cut = |has_file: bool| {
        let mut new = on_5(&old);
        new.timelines = vec![5, 6];
        if !has_file {
            new.file.replace(None);
        }
        new
    };
    assert_eq!(turn(cut(true)), Err(Trouble::Fault(Fault::Turn(6))));
    assert_eq!(turn(cut(false)), Err(Trouble::Fault(Fault::Turn(6))));
    let mut accepted = unknown();
    let new = protocol::accept_turn(&mut accepted).unwrap();
    assert_ne!(new, 1, "the turn of the old primary");
    // It is recorded: neither a restart nor a lost file changes it.
    let restarted = accepted.restarted();
    for has_file in [true, false] {
        let mut again = standby(&restarted);
        again.has_history = false;
        if !has_file {
            again.file.replace(None);
        }
        assert_eq!(protocol::part(&mut again).map(Part::turn), Ok(new));
    }
    // With a whole history there is nothing to accept.
    assert_eq!(protocol::accept_turn(&mut on_5(&old)), Ok(2));
}
