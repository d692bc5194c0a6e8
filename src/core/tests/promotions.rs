//! The turn of a server whose history is lost, or begins again. The simulator plays promotions themselves.

use flake_core::ledger::durable::page::record_mark;
use flake_core::ledger::host::Fault;
use flake_core::ledger::time::begin::parts;
use flake_core::ledger::time::operator::accept_turn;

mod alone;
use alone::making::{server, session};
use alone::{Alone, HOUR, NOON, Trouble};

fn turn(alone: &mut Alone) -> Result<u32, Trouble> {
    Ok(parts(alone)?[0].turn())
}

/// A standby of a server, with its file and its page as they are now.
fn standby(of: &Alone) -> Alone {
    let mut new = Alone::new();
    (new.page, new.timelines) = (of.page.clone(), of.timelines.clone());
    new.file.replace(of.file.borrow().clone());
    new.random.set(of.random.get() + 1000);
    new
}

/// pg_upgrade begins with timeline 1 again. The old cluster's primary of timeline 1 may still run.
#[test]
fn a_cluster_that_was_upgraded_after_a_promotion_takes_another_turn() {
    let mut old = server();
    let _ = session(&mut old);
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
    let mut old = server();
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
