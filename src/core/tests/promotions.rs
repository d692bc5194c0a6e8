//! Promotions: each timeline has another part of the node's IDs, and a new primary begins above everything that it has replayed.

use std::collections::HashSet;

use flake_core::ledger::durable::page::record_mark;
use flake_core::ledger::host::{Fault, Server};
use flake_core::ledger::time::begin::parts;
use flake_core::ledger::time::grant::RESERVE_AHEAD_MICROS;
use flake_core::ledger::time::operator::accept_turn;
use flake_core::{Answer, Layout, Part, Place, Resumable, built_in, lanes_of};

mod alone;
use alone::{Alone, HOUR, NOON, SECOND, Trouble};

fn turn(alone: &mut Alone) -> Result<u32, Trouble> {
    Ok(parts(alone)?[0].turn())
}

fn session(alone: &mut Alone) -> Resumable<&'static Layout> {
    let twitter = built_in("twitter").unwrap();
    let lanes = lanes_of(&twitter, parts(alone).unwrap()).unwrap();
    let place = Place::find(alone, &twitter, lanes, 0, 1).unwrap();
    Resumable::begin(alone, twitter, &place).unwrap()
}

fn make(alone: &mut Alone, session: &mut Resumable<&Layout>) -> u64 {
    match session.next(alone, |_, _, _| Ok(()), || 0) {
        Ok(Answer::Issue(id)) => id,
        answer => panic!("{answer:?}"),
    }
}

/// A server that makes IDs at noon, and has been running for an hour.
fn primary() -> (Alone, Resumable<&'static Layout>) {
    let mut alone = Alone::new();
    alone.at(NOON - HOUR);
    record_mark(&mut alone).unwrap();
    alone.at(NOON);
    let mut own = session(&mut alone);
    make(&mut alone, &mut own);
    (alone, own)
}

/// A standby of a server, with its file and its page as they are now.
fn standby(of: &Alone) -> Alone {
    let mut new = Alone::new();
    (new.page, new.timelines) = (of.page.clone(), of.timelines.clone());
    new.file.replace(of.file.borrow().clone());
    new.random.set(of.random.get() + 1000);
    new
}

/// All of them run on, and their clocks show the same times.
#[test]
fn an_old_primary_and_four_new_ones_have_no_id_in_common() {
    let (old, own) = primary();
    let mut servers = vec![(old, own)];
    for _ in 0..4 {
        let mut new = standby(&servers.last().unwrap().0).promoted();
        new.at(NOON - 60 * SECOND);
        let own = session(&mut new);
        servers.push((new, own));
    }
    let turns: Vec<_> = servers.iter_mut().map(|(server, _)| turn(server).unwrap()).collect();
    assert_eq!(turns, [1, 2, 3, 0, 1]);
    servers.pop();
    let mut made = HashSet::new();
    for _ in 0..4000 {
        for (number, (server, own)) in servers.iter_mut().enumerate() {
            server.pass(20_000);
            let id = make(server, own);
            assert!(made.insert(id), "{id} of server {number}");
        }
    }
}

/// Its clock is behind, and its file is the one of the old primary, or is lost.
#[test]
fn a_promoted_server_makes_ids_at_once_above_all_that_it_has_replayed() {
    for has_file in [true, false] {
        let (mut old, mut own) = primary();
        let last = make(&mut old, &mut own);
        let mut new = standby(&old).promoted();
        if !has_file {
            new.file.replace(None);
        }
        new.at(NOON - 20 * SECOND);
        let mut own = session(&mut new);
        assert!(make(&mut new, &mut own) > last);
        assert_eq!(new.ledger().floor, NOON + RESERVE_AHEAD_MICROS);
        assert_eq!(new.led(), NOON + RESERVE_AHEAD_MICROS);
    }
}

/// pg_upgrade begins with timeline 1 again. The old cluster's primary of timeline 1 may still run.
#[test]
fn a_cluster_that_was_upgraded_after_a_promotion_takes_another_turn() {
    let (old, _) = primary();
    let mut successor = standby(&old).promoted();
    let _ = session(&mut successor);
    record_mark(&mut successor).unwrap();
    let upgraded = || {
        let mut new = Alone::new();
        (new.page.reserved, new.page.turns) = (successor.page.reserved, successor.page.turns);
        new.at(NOON + HOUR);
        new
    };
    let mut new = upgraded();
    assert_eq!(turn(&mut new), Ok(3));
    // The next promotion is to timeline 2, as the first one was.
    record_mark(&mut new).unwrap();
    let mut next = standby(&new).promoted();
    assert_eq!(turn(&mut next), Ok(0));
    // The upgraded server runs on without having written its page.
    let mut next = standby(&upgraded()).promoted();
    assert!(![1, 2, 3].contains(&turn(&mut next).unwrap()));
}

/// The history is lost. The file or the page says which turn the timeline before had, or a superuser accepts the turn.
#[test]
fn without_a_history_the_turn_is_recorded_accepted_or_unknown() {
    let (mut old, _) = primary();
    record_mark(&mut old).unwrap();
    let on_5 = |of: &Alone| {
        let mut new = standby(of);
        new.timelines = vec![1, 5];
        new
    };
    assert_eq!(turn(&mut on_5(&old)), Ok(2));
    let unknown = || {
        let mut new = on_5(&old);
        new.has_history = false;
        new
    };
    assert_eq!(turn(&mut unknown()), Err(Trouble::Fault(Fault::Turn(5))));
    // The file's record is lost too, and the history is cut short.
    let cut = |has_file: bool| {
        let mut new = on_5(&old);
        new.timelines = vec![5, 6];
        if !has_file {
            new.file.replace(None);
        }
        new
    };
    assert_eq!(turn(&mut cut(true)), Err(Trouble::Fault(Fault::Turn(6))));
    assert_eq!(turn(&mut cut(false)), Err(Trouble::Fault(Fault::Turn(6))));
    let mut accepted = unknown();
    let new = accept_turn(&mut accepted).unwrap();
    assert_ne!(new, 1, "the turn of the old primary");
    // It is recorded: neither a restart nor a lost file changes it, and another database has it from the file.
    let restarted = accepted.restarted();
    for (has_file, has_page) in [(true, true), (false, true), (true, false)] {
        let mut again = standby(&restarted);
        again.has_history = false;
        if !has_file {
            again.file.replace(None);
        }
        if !has_page {
            again.page = Alone::new().page;
        }
        assert_eq!(turn(&mut again), Ok(new));
    }
    // With a whole history there is nothing to accept.
    assert_eq!(accept_turn(&mut on_5(&old)), Ok(2));
}

#[test]
fn each_generation_of_a_turn_is_another_part() {
    let (mut old, _) = primary();
    let [one, other] = parts(&mut old).unwrap();
    assert_eq!((one.turn(), other.turn(), one.generation(), other.generation()), (1, 1, 0, 1));
    assert_eq!(old.ledger().part(), one);
    let all: HashSet<String> =
        (0..8).map(|number| format!("{:?}", Part::in_turn(one.node(), number % 4, number / 4))).collect();
    assert_eq!(all.len(), 8);
    assert_eq!(old.shared().era() & 1, 0);
}
