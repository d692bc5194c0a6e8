//! Stories of one slot of a server: what a session has made, none after it makes again, and each can go on.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::convert::Infallible;
use std::fmt::Debug;
use std::hash::Hash;

use flake_core::resume::{Beginning, Grant, LedgerAccess, Origin, Resumable, Resume};
use flake_core::timeline::AHEAD;
use flake_core::{
    Answer, Generator, Layout, Ledger, Node, Numbers, Progress, Share, Slot, SlotProgress, SnoGenerator, Start, Window,
    built_in, sno,
};

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3600 * SECOND;
/// The beginning of an hour, of a millisecond and of a unit of sno.
const NOON: i64 = 1_780_000_000 / 3600 * 3600 * SECOND;

/// A server with one slot, whose disk never fails.
struct Server {
    ledger: RefCell<Ledger>,
    slot: RefCell<SlotProgress>,
    last_seen: Cell<i64>,
    made: RefCell<HashSet<String>>,
}

impl LedgerAccess for Server {
    type Error = Infallible;

    fn begin(&self, key: u64) -> Beginning {
        let ledger = self.ledger.borrow();
        let start = self.slot.borrow().start(&ledger, key, i64::MIN);
        Beginning { start, last_seen: self.last_seen.get(), era: ledger.era(), window: ledger.window() }
    }

    fn era(&self) -> u64 {
        self.ledger.borrow().era()
    }

    fn grant(&self, now: i64, tick_end: i64, goes_back: bool) -> Result<Grant, Infallible> {
        let old = *self.ledger.borrow();
        let is_past = goes_back && now < old.window().from;
        let asked =
            if is_past { old.covered(now, tick_end) } else { old.extended(now, tick_end).map(|l| (l, l.window())) };
        Ok(match asked {
            Ok((ledger, window)) => {
                self.ledger.replace(ledger);
                Grant::Window(window, ledger.era())
            }
            Err(until) => Grant::After(until),
        })
    }
}

/// A generator that makes an ID when it is told the time.
trait Asked: Resume {
    fn ask(&mut self, now: i64) -> Answer<Self::Id>;
}

impl Asked for Generator {
    fn ask(&mut self, now: i64) -> Answer<u64> {
        self.next(now, || 0)
    }
}

impl Asked for SnoGenerator {
    fn ask(&mut self, now: i64) -> Answer<flake_core::Sno> {
        self.next(now, 0)
    }
}

impl Server {
    fn with(ledger: Ledger) -> Self {
        let (slot, made) = (RefCell::default(), RefCell::default());
        Self { ledger: RefCell::new(ledger), slot, last_seen: Cell::new(i64::MIN), made }
    }

    /// A server that has been running for an hour at noon.
    fn at_noon() -> Self {
        Self::with(Ledger::new(NOON - HOUR))
    }

    /// A server that starts with the disk and the IDs of this one, but without its memory.
    fn restarted(self) -> Self {
        let ledger = Ledger::reopened(*self.ledger.borrow().timeline(), None);
        Self { made: self.made, ..Self::with(ledger) }
    }

    fn session(&self, layout: &Layout) -> Resumable<Generator> {
        let share = Share::new(layout, Node::new(0, 1).unwrap(), Slot::new(0, 122).unwrap()).unwrap();
        Resumable::begin(self, layout.key(), Origin { layout: layout.clone(), share, position: 0 })
    }

    /// A session that makes snos in a partition, whose units have one step.
    fn of_sno(&self, partition: i32) -> Resumable<SnoGenerator> {
        let partitions = Numbers { first: partition as u64, count: 1 };
        let share = Share::undivided(partitions, Numbers { first: 0, count: 1 << 16 });
        Resumable::begin(self, sno::key(Some(partition)), share)
    }

    /// Returns whether a session makes an ID at an instant; it has to be a new one.
    fn makes<G: Asked<Id: Debug + Hash>>(&self, session: &mut Resumable<G>, now: i64) -> bool {
        let Ok(answer) = session.next(self, |generator| (now, generator.ask(now)));
        let Answer::Issue(id) = answer else { return false };
        assert!(self.made.borrow_mut().insert(format!("{id:?}")), "{id:?} a second time, {} us after noon", now - NOON);
        true
    }

    fn exit<G: Resume>(&self, session: &Resumable<G>) {
        self.slot.borrow_mut().store(&session.final_progress());
    }

    fn accept(&self, now: i64) -> i64 {
        let (ledger, from) = self.ledger.borrow().accepted(now);
        self.ledger.replace(ledger);
        from
    }
}

fn twitter() -> &'static Layout {
    built_in("twitter").unwrap()
}

/// Twitter's bits with ticks of a minute.
fn minutes() -> Layout {
    let twitter = twitter();
    Layout::new("minutes", 0, 60 * SECOND, twitter.fields().to_vec(), twitter.rule()).unwrap()
}

#[test]
fn nothing_is_made_in_the_tick_of_the_start() {
    let server = Server::with(Ledger::new(NOON));
    let mut session = server.session(twitter());
    assert!(!server.makes(&mut session, NOON + 100));
    assert!(server.makes(&mut session, NOON + 1000));
}

#[test]
fn time_is_asked_for_before_it_is_used() {
    let window = Window { from: NOON, until: NOON + SECOND, skip: i64::MAX };
    let server = Server::at_noon();
    let (mut session, mut of_sno) = (server.session(twitter()).generator, server.of_sno(7).generator);
    session.allow(window);
    of_sno.allow(window);
    for (now, is_allowed) in [(-4000, false), (0, true), (SECOND - 1, true), (SECOND, false)] {
        assert_eq!(matches!(session.ask(NOON + now), Answer::Issue(_)), is_allowed);
        assert_eq!(matches!(of_sno.ask(NOON + now), Answer::Issue(_)), is_allowed);
    }
}

#[test]
fn a_new_session_waits_for_the_clock_that_earlier_ones_saw() {
    let server = Server::at_noon();
    server.last_seen.set(NOON + SECOND);
    let mut session = server.session(twitter());
    assert!(!server.makes(&mut session, NOON + SECOND / 2));
    assert!(server.makes(&mut session, NOON + SECOND));
}

#[test]
fn a_session_continues_where_the_last_one_stopped() {
    let server = Server::at_noon();
    for _ in 0..3 {
        let (mut session, mut of_sno) = (server.session(twitter()), server.of_sno(7));
        assert!(server.makes(&mut session, NOON) && server.makes(&mut of_sno, NOON));
        server.exit(&session);
        server.exit(&of_sno);
    }
}

#[test]
fn each_partition_of_sno_has_its_own_progress() {
    let server = Server::at_noon();
    let mut sessions = [7, 8].map(|partition| server.of_sno(partition));
    assert!(server.makes(&mut sessions[0], NOON) && server.makes(&mut sessions[0], NOON));
    assert!(server.makes(&mut sessions[1], NOON));
    sessions.iter().for_each(|session| server.exit(session));
    assert!(server.makes(&mut server.of_sno(7), NOON));
}

/// Whether the oldest progress is stored first or last.
#[test]
fn more_generators_than_a_slot_has_room_for() {
    for is_backwards in [false, true] {
        let server = Server::at_noon();
        let at = |partition: i32| NOON + i64::from(partition) * 4000;
        let mut sessions: Vec<_> = (0..20).map(|partition| server.of_sno(partition)).collect();
        for (session, partition) in sessions.iter_mut().zip(0..) {
            assert!(server.makes(session, at(partition)));
        }
        if is_backwards {
            sessions.reverse();
        }
        sessions.iter().for_each(|session| server.exit(session));
        for partition in 0..20 {
            server.makes(&mut server.of_sno(partition), at(partition));
            assert!(server.makes(&mut server.of_sno(partition), at(20)));
        }
    }
}

#[test]
fn a_session_that_stored_nothing_gives_up_the_time_that_was_granted() {
    let server = Server::at_noon();
    assert!(server.makes(&mut server.session(twitter()), NOON));
    let ledger = *server.ledger.borrow();
    server.slot.borrow_mut().abandon(ledger.era(), ledger.granted_until());
    let mut session = server.session(twitter());
    assert!(!server.makes(&mut session, NOON) && !server.makes(&mut session, NOON + AHEAD - 1));
    assert!(server.makes(&mut session, NOON + AHEAD));
}

#[test]
fn what_is_below_the_floor_is_not_resumed() {
    let server = Server::at_noon();
    let mut session = server.session(twitter());
    assert!(server.makes(&mut session, NOON));
    server.exit(&session);
    let start = |floor| server.slot.borrow().start(&server.ledger.borrow(), twitter().key(), floor);
    assert_eq!(start(NOON).resumed, Some(session.final_progress().progress));
    assert_eq!(start(NOON + 1), Start { free_from: NOON + 1, resumed: None });
}

#[test]
fn a_floor_that_the_clock_has_stepped_back_over() {
    let server = Server::at_noon();
    let mut session = server.of_sno(7);
    assert!(server.makes(&mut session, NOON + 12_000) && server.makes(&mut session, NOON));
    let Progress { start, stepped_back_from, drifts, .. } = session.final_progress().progress;
    assert_eq!((start, stepped_back_from, drifts), (NOON, NOON + 12_000, 1));
    server.exit(&session);
    let start = server.slot.borrow().start(&server.ledger.borrow(), sno::key(Some(7)), NOON + 4000);
    assert_eq!(start, Start { free_from: NOON + 12_001, resumed: None });
}

#[test]
fn snos_do_not_go_back_below_the_floor() {
    let server = Server::at_noon();
    assert!(server.makes(&mut server.of_sno(7), NOON) && server.makes(&mut server.session(twitter()), NOON));
    let server = server.restarted();
    let mut session = server.of_sno(7);
    assert!(server.makes(&mut session, NOON + AHEAD));
    assert!(!server.makes(&mut session, NOON));
    assert!(!server.makes(&mut session, NOON + AHEAD - 4000));
}

#[test]
fn a_crash_with_the_clock_behind() {
    let server = Server::at_noon();
    assert!(server.makes(&mut server.session(twitter()), NOON));
    let server = server.restarted();
    let mut session = server.session(twitter());
    assert!(!server.makes(&mut session, NOON) && !server.makes(&mut session, NOON + AHEAD - 1));
    assert!(server.makes(&mut session, NOON + AHEAD));
}

#[test]
fn a_ledger_that_is_raised_in_a_running_server() {
    let server = Server::at_noon();
    let mut session = server.session(twitter());
    assert!(server.makes(&mut session, NOON));
    let raised = server.ledger.borrow().raised_to(NOON + 10 * SECOND);
    server.ledger.replace(raised);
    assert!(!server.makes(&mut server.session(twitter()), NOON + AHEAD));
    assert!(!server.makes(&mut session, NOON + AHEAD), "its own time is over");
    assert!(!server.makes(&mut session, NOON + 10 * SECOND - 1));
    assert!(server.makes(&mut session, NOON + 10 * SECOND));
}

/// A clock was an hour ahead, and is set right. What follows is before, in and after the time that was used ahead.
fn after_a_clock_that_was_ahead(layout: &Layout) -> (Server, Resumable<Generator>) {
    let server = Server::at_noon();
    let mut session = server.session(layout);
    for now in [NOON, NOON + HOUR + 10 * SECOND, NOON + HOUR + 10 * SECOND] {
        assert!(server.makes(&mut session, now));
    }
    assert!(!server.makes(&mut session, NOON + 60 * SECOND));
    assert_eq!(server.accept(NOON + 60 * SECOND), NOON + 60 * SECOND);
    (server, session)
}

#[test]
fn sessions_go_on_in_a_new_era() {
    let (server, mut session) = after_a_clock_that_was_ahead(twitter());
    assert!(server.makes(&mut session, NOON + 61 * SECOND));
}

#[test]
fn progress_of_another_era_is_none() {
    let (server, session) = after_a_clock_that_was_ahead(twitter());
    server.exit(&session);
    assert!(server.makes(&mut server.session(twitter()), NOON + 61 * SECOND));
    // The slot knows of the new era when another session of the old one exits.
    let (server, session) = after_a_clock_that_was_ahead(twitter());
    let mut other = server.of_sno(7);
    assert!(server.makes(&mut other, NOON + 61 * SECOND));
    server.exit(&other);
    server.exit(&session);
    assert!(server.makes(&mut server.session(twitter()), NOON + 61 * SECOND));
}

/// It would store what it has made there as progress of the old era, which nobody resumes.
#[test]
fn time_of_a_new_era_is_for_those_who_began_in_it() {
    let server = Server::at_noon();
    let mut session = server.session(twitter());
    assert!(server.makes(&mut session, NOON));
    assert_eq!(server.accept(NOON + 60 * SECOND), NOON + 60 * SECOND);
    for _ in 0..2 {
        assert!(server.makes(&mut session, NOON + 61 * SECOND));
        server.exit(&session);
        session = server.session(twitter());
    }
}

#[test]
fn time_that_a_clock_ahead_has_used_is_skipped() {
    let (server, mut session) = after_a_clock_that_was_ahead(twitter());
    let skipped = NOON + HOUR + 10 * SECOND;
    assert!(server.makes(&mut session, skipped - 1000));
    for now in [skipped, skipped + SECOND, skipped + AHEAD - 1] {
        assert!(!server.makes(&mut session, now) && !server.makes(&mut server.session(twitter()), now));
    }
    assert!(server.makes(&mut session, skipped + AHEAD));
}

#[test]
fn a_tick_that_reaches_into_skipped_time_is_closed() {
    let (server, mut session) = after_a_clock_that_was_ahead(&minutes());
    // The time that is granted here is not that of the next tick.
    assert!(server.makes(&mut session, NOON + HOUR - 2 * SECOND));
    assert!(!server.makes(&mut session, NOON + HOUR + SECOND / 2));
    assert!(!server.makes(&mut session, NOON + HOUR + 9 * SECOND));
}

#[test]
fn a_tick_that_begins_in_skipped_time_is_closed() {
    let (server, mut session) = after_a_clock_that_was_ahead(&minutes());
    assert!(server.makes(&mut session, NOON + 120 * SECOND));
    assert!(!server.makes(&mut session, NOON + HOUR + 30 * SECOND));
    assert!(server.makes(&mut session, NOON + HOUR + 60 * SECOND));
}

/// A unit of sno begins unused, and ends in skipped time, where it was used.
#[test]
fn a_unit_that_reaches_into_skipped_time_is_not_gone_back_to() {
    let server = Server::at_noon();
    let mut session = server.session(twitter());
    assert!(server.makes(&mut server.of_sno(7), NOON + 2000));
    assert_eq!(server.accept(NOON - 1000), NOON - 1000);
    assert!(server.makes(&mut session, NOON + 500));
    assert!(!server.makes(&mut server.of_sno(7), NOON + 400));
}

/// A sno was made in the past with the other tick-tock bit. That time is not accepted as unused.
#[test]
fn what_a_sno_goes_back_to_is_used() {
    let server = Server::at_noon();
    let past = NOON + HOUR / 2;
    let mut session = server.of_sno(7);
    for now in [NOON, NOON + HOUR, past] {
        assert!(server.makes(&mut session, now));
    }
    assert_eq!(server.accept(past), past + AHEAD);
    let mut session = server.of_sno(7);
    assert!(server.makes(&mut session, past + 60 * SECOND));
    assert!(!server.makes(&mut session, past));
}

#[test]
fn accepting_the_clock_opens_unused_time_only() {
    let server = Server::at_noon();
    let mut session = server.session(twitter());
    assert!(server.makes(&mut session, NOON) && server.makes(&mut session, NOON + HOUR));
    assert_eq!(server.accept(NOON), NOON + AHEAD);
    assert!(!server.makes(&mut server.session(twitter()), NOON));
    assert!(server.makes(&mut server.session(twitter()), NOON + AHEAD));
}

/// More stretches of used time than a timeline holds: what it merges, it counts as used.
#[test]
fn used_time_is_never_forgotten() {
    let mut ledger = Ledger::new(NOON);
    let starts: Vec<i64> = (1..100).rev().map(|hour| NOON + hour * HOUR).collect();
    for &now in &starts {
        ledger = ledger.accepted(now).0.extended(now, now + 1000).unwrap();
    }
    let timeline = ledger.timeline();
    for used in starts {
        let is_known = timeline.stretches().iter().any(|stretch| (stretch.from..stretch.until).contains(&used));
        assert!(is_known, "{} hours after noon: {timeline:?}", (used - NOON) / HOUR);
    }
}
