//! Stories of one slot of a server: no session makes an ID that an earlier one has made, and each session can make more.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::atomic::Ordering;

use flake_core::ledger::claims::Claim;
use flake_core::ledger::host::{Server, SlotOwner};
use flake_core::ledger::part_time::AHEAD;
use flake_core::ledger::protocol;
use flake_core::ledger::state::Ledger;
use flake_core::{
    Answer, IdSource, Lanes, Layout, Numbers, OwnWords, Part, Place, Progress, Resumable, SequenceRule, SlotProgress,
    SnoSource, Start, Window, built_in,
};

mod alone;
use alone::{Alone, HOUR, NOON, SECOND};

/// A server with one slot, whose disk never fails.
struct One {
    alone: RefCell<Alone>,
    made: RefCell<HashSet<String>>,
}

/// A source whose IDs need no argument.
trait Plain: IdSource {
    const PLAIN: Self::Argument;
}

impl Plain for &Layout {
    const PLAIN: fn() -> u64 = || 0;
}

impl Plain for SnoSource {
    const PLAIN: u8 = 0;
}

impl One {
    /// A server at noon that has been running for an hour.
    fn at_noon() -> Self {
        let mut alone = Alone::new();
        alone.at(NOON - HOUR);
        protocol::record_mark(&mut alone).unwrap();
        Self { alone: RefCell::new(alone), made: RefCell::default() }
    }

    /// Restarts the server: it keeps the disk and the list of IDs, but not the memory.
    fn restarted(self) -> Self {
        Self { alone: RefCell::new(self.alone.into_inner().restarted()), made: self.made }
    }

    fn session<'a>(&self, layout: &'a Layout) -> Resumable<&'a Layout> {
        let lanes = Lanes::new(layout, self.part()).unwrap();
        let place = Place::find(&*self.alone.borrow(), &layout, lanes, 0, 1).unwrap();
        Resumable::begin(&mut *self.alone.borrow_mut(), layout, &place).unwrap()
    }

    /// A session that makes snos in an automatic partition, whose ticks have one step.
    fn of_sno(&self) -> Resumable<SnoSource> {
        let (workers, sequences) = (Numbers { first: 1 << 15, count: 1 }, Numbers { first: 0, count: 65536 });
        let lanes = Lanes::of_slots("sno", workers, sequences, 1, 1).unwrap();
        let place = Place { lanes, lane: 0, claim: Claim::NONE };
        Resumable::begin(&mut *self.alone.borrow_mut(), SnoSource { partition: None }, &place).unwrap()
    }

    /// A session that makes snos in a partition of the caller's.
    fn of_caller(&self, partition: i32) -> Resumable<SnoSource> {
        let source = SnoSource { partition: Some(partition) };
        let lanes = source.lanes(self.part(), 8).unwrap();
        let place = Place::find(&*self.alone.borrow(), &source, lanes, 0, 1).unwrap();
        Resumable::begin(&mut *self.alone.borrow_mut(), source, &place).unwrap()
    }

    fn part(&self) -> Part {
        protocol::part(&mut *self.alone.borrow_mut()).unwrap()
    }

    /// Returns whether a session makes an ID at an instant. The ID must be new.
    fn makes<S: Plain<Id: Debug + Hash>>(&self, session: &mut Resumable<S>, now: i64) -> bool {
        self.alone.borrow().at(now);
        let outcome = session.next(&mut *self.alone.borrow_mut(), |_| (now, Ok(())), S::PLAIN);
        let Ok(Answer::Issue(id)) = outcome else { return false };
        assert!(self.made.borrow_mut().insert(format!("{id:?}")), "{id:?} a second time, {} us after noon", now - NOON);
        true
    }

    fn exit<S: IdSource>(&self, session: &Resumable<S>) {
        let last = session.final_progress();
        self.slot(|slot| slot.store(&last));
    }

    fn accept(&self, now: i64) -> i64 {
        self.alone.borrow().at(now);
        protocol::accept(&mut *self.alone.borrow_mut()).unwrap().from
    }

    fn slot<R>(&self, act: impl FnOnce(&mut SlotProgress) -> R) -> R {
        self.alone.borrow_mut().slot(act)
    }

    fn ledger(&self) -> Ledger {
        self.alone.borrow().lock(|state| state.ledger).unwrap()
    }
}

fn twitter() -> &'static Layout {
    built_in("twitter").unwrap()
}

/// Twitter's bits with ticks of a minute.
fn minutes() -> Layout {
    let twitter = twitter();
    Layout::new("minutes", 0, 60 * SECOND, twitter.fields().to_vec(), twitter.rule).unwrap()
}

#[test]
fn nothing_is_made_in_the_tick_of_the_start() {
    let server = One { alone: RefCell::new(Alone::new()), made: RefCell::default() };
    server.alone.borrow().at(NOON + 100);
    let mut session = server.session(twitter());
    let mut of_snos = server.of_sno();
    assert!(!server.makes(&mut session, NOON + 200) && server.makes(&mut session, NOON + 1000));
    assert!(!server.makes(&mut of_snos, NOON + 3000) && server.makes(&mut of_snos, NOON + 4000));
}

/// A session of the new era could otherwise find a word of an earlier one.
#[test]
fn words_are_reset_before_their_era_is_published() {
    let server = One::at_noon();
    assert!(server.makes(&mut server.session(twitter()), NOON + SECOND));
    server.accept(NOON);
    let era = server.ledger().time.era;
    assert!(server.alone.borrow().eras.borrow().iter().copied().skip(1).eq(0..era));
}

#[test]
fn time_is_asked_for_before_it_is_used() {
    let window = Window { from: NOON, until: NOON + SECOND, skip: i64::MAX };
    let server = One::at_noon();
    let (mut session, mut of_sno) = (server.session(twitter()).generator, server.of_caller(7).generator);
    session.allow(window);
    of_sno.allow(window);
    let [words, of_partition] =
        [session.lanes(), of_sno.lanes()].map(|lanes| OwnWords::new(lanes, SequenceRule::Reset));
    for (now, is_allowed) in [(-4000, false), (0, true), (SECOND - 1, true), (SECOND, false)] {
        assert_eq!(matches!(session.next(NOON + now, &words, || 0), Answer::Issue(_)), is_allowed);
        assert_eq!(matches!(of_sno.next(NOON + now, &of_partition, 0), Answer::Issue(_)), is_allowed);
    }
}

#[test]
fn a_session_continues_where_the_last_one_stopped() {
    let server = One::at_noon();
    for _ in 0..3 {
        assert!(server.makes(&mut server.session(twitter()), NOON));
        assert!(server.makes(&mut server.of_caller(7), NOON));
    }
}

/// Its lane has no word, so the rest of the unit is left out.
#[test]
fn a_session_of_sno_continues_in_the_unit_after_the_last_one() {
    let server = One::at_noon();
    for unit in 0..3 {
        let (mut session, now) = (server.of_sno(), NOON + 4000 * unit);
        assert!(unit == 0 || !server.makes(&mut session, now - 1));
        assert!(server.makes(&mut session, now));
        server.exit(&session);
    }
}

/// Ticks have one step, and the server's part has four IDs of them in two lanes. In every second tick, the lane of the session has the first place.
#[test]
fn a_rolling_sequence_that_has_wrapped_around_is_continued() {
    let mut fields = twitter().fields().to_vec();
    fields.remove(1);
    (fields[1].bits, fields[2].bits) = (1, 5);
    let rolling = Layout::new("rolling", NOON - HOUR, 10, fields, SequenceRule::Rolling).unwrap();
    let server = One::at_noon();
    for (at, may_make) in [(0, 2), (20, 3), (20, 1), (20, 0), (40, 4)] {
        let mut session = server.session(&rolling);
        (0..may_make).for_each(|_| assert!(server.makes(&mut session, NOON + at)));
    }
    assert!(!server.makes(&mut server.session(&rolling), NOON + 40));
}

/// The words of layouts, and of partitions of callers, are right however a session ends.
#[test]
fn a_session_that_stored_nothing_gives_up_the_time_that_was_granted() {
    let server = One::at_noon();
    assert!(server.makes(&mut server.of_sno(), NOON) && server.makes(&mut server.of_caller(7), NOON));
    let ledger = server.ledger();
    server.slot(|slot| slot.abandon(ledger.time.era, ledger.time.until()));
    let mut session = server.of_sno();
    assert!(server.makes(&mut server.session(twitter()), NOON) && server.makes(&mut server.of_caller(7), NOON));
    assert!(!server.makes(&mut session, NOON) && !server.makes(&mut session, NOON + AHEAD - 1));
    assert!(server.makes(&mut session, NOON + AHEAD));
}

#[test]
fn ids_wait_for_a_floor_that_the_clock_has_stepped_back_over() {
    let server = One::at_noon();
    let mut session = server.of_sno();
    assert!(server.makes(&mut session, NOON + 12_000) && server.makes(&mut session, NOON));
    let Progress { start, stepped_back_from, drifts, .. } = session.final_progress().progress;
    assert_eq!((start, stepped_back_from, drifts), (NOON, NOON + 12_000, 1));
    server.exit(&session);
    let era = server.ledger().time.era;
    let start = server.slot(|slot| slot.start(era, NOON + 4000));
    assert_eq!(start, Start { free_from: NOON + 12_001, resumed: None });
}

#[test]
fn snos_do_not_go_back_below_the_floor() {
    let server = One::at_noon();
    assert!(server.makes(&mut server.of_sno(), NOON) && server.makes(&mut server.session(twitter()), NOON));
    let server = server.restarted();
    let mut session = server.of_sno();
    assert!(server.makes(&mut session, NOON + AHEAD));
    assert!(!server.makes(&mut session, NOON) && !server.makes(&mut session, NOON + AHEAD - 4000));
}

/// The automatic partitions remember how often the clock has stepped back, so a successor goes back there.
#[test]
fn a_session_of_automatic_snos_goes_back_like_the_last_one() {
    let server = One::at_noon();
    let mut first = server.of_sno();
    assert!([8_000, 12_000, 4_000].into_iter().all(|at| server.makes(&mut first, NOON + at)));
    server.exit(&first);
    let mut again = server.of_sno();
    assert!(server.makes(&mut again, NOON + 8_000), "as one of the clock that has stepped back");
    assert!(server.makes(&mut again, NOON + 24_000) && server.makes(&mut again, NOON + 16_000));
    assert!(!server.makes(&mut again, NOON + 12_000), "the clock has stepped back from there");
}

#[test]
fn ids_wait_after_a_crash_if_the_clock_is_behind() {
    let server = One::at_noon();
    assert!(server.makes(&mut server.session(twitter()), NOON));
    let server = server.restarted();
    let mut session = server.session(twitter());
    assert!(!server.makes(&mut session, NOON) && !server.makes(&mut session, NOON + AHEAD - 1));
    assert!(server.makes(&mut session, NOON + AHEAD));
}

#[test]
fn an_exit_note_is_not_below_an_announced_horizon() {
    let server = One::at_noon();
    protocol::join(&mut *server.alone.borrow_mut()).unwrap();
    let mut session = server.session(twitter());
    assert!(server.makes(&mut session, NOON));
    server.alone.borrow().shared().announced.fetch_max(NOON + SECOND, Ordering::SeqCst);
    protocol::leave(&mut *server.alone.borrow_mut(), Some(&[session.final_progress()]));
    let server = server.restarted();
    assert!(!server.makes(&mut server.session(twitter()), NOON + SECOND - 1));
    assert!(server.makes(&mut server.session(twitter()), NOON + SECOND + 1000), "the rest is given back");
}

#[test]
fn sessions_follow_a_ledger_that_is_raised_in_a_running_server() {
    let server = One::at_noon();
    let mut session = server.session(twitter());
    assert!(server.makes(&mut session, NOON));
    protocol::start_above(&mut *server.alone.borrow_mut(), NOON + 10 * SECOND).unwrap();
    assert!(!server.makes(&mut server.session(twitter()), NOON + AHEAD));
    assert!(!server.makes(&mut session, NOON + AHEAD), "its own time is over");
    assert!(!server.makes(&mut session, NOON + 10 * SECOND - 1));
    assert!(server.makes(&mut session, NOON + 10 * SECOND));
}

/// A clock was an hour ahead and is set right. The callers ask for IDs before, in and after the time that was used ahead.
fn after_a_clock_that_was_ahead(layout: &Layout) -> (One, Resumable<&Layout>) {
    let server = One::at_noon();
    let mut session = server.session(layout);
    for now in [NOON, NOON + HOUR + 10 * SECOND, NOON + HOUR + 10 * SECOND] {
        assert!(server.makes(&mut session, now));
    }
    assert!(!server.makes(&mut session, NOON + 60 * SECOND));
    assert_eq!(server.accept(NOON + 60 * SECOND), NOON + 60 * SECOND);
    (server, session)
}

#[test]
fn sessions_continue_in_a_new_era() {
    let (server, mut session) = after_a_clock_that_was_ahead(twitter());
    assert!(server.makes(&mut session, NOON + 61 * SECOND));
}

#[test]
fn progress_of_another_era_does_not_count() {
    let of_caller = |server: &One| server.of_caller(7);
    for begin in [One::of_sno, of_caller] {
        let server = One::at_noon();
        let mut session = begin(&server);
        assert!(server.makes(&mut session, NOON + HOUR));
        assert_eq!(server.accept(NOON + 60 * SECOND), NOON + 60 * SECOND);
        server.exit(&session);
        let mut next = begin(&server);
        assert!(server.makes(&mut next, NOON + 61 * SECOND));
        let back = NOON + 60 * SECOND + SECOND / 2;
        assert_eq!(server.makes(&mut next, back), next.final_progress().goes_back, "the era knows of no later clock");
        // The slot learns of the new era when a session of it exits, before one of the old era does.
        server.exit(&next);
        server.exit(&session);
        let mut last = begin(&server);
        assert!(!server.makes(&mut last, back), "a session of this era has stopped there");
        assert!(server.makes(&mut last, NOON + 62 * SECOND));
    }
}

/// A generator of an earlier era would take from the words of that era, which count no more.
#[test]
fn only_generators_that_began_in_an_era_use_its_time() {
    let server = One::at_noon();
    let mut session = server.session(twitter());
    assert!(server.makes(&mut session, NOON));
    assert_eq!(server.accept(NOON + 60 * SECOND), NOON + 60 * SECOND);
    for _ in 0..2 {
        assert!(server.makes(&mut session, NOON + 61 * SECOND));
        assert!(session.is_of(server.ledger().time.era), "the session must have begun anew");
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
    let minutes = minutes();
    let (server, mut session) = after_a_clock_that_was_ahead(&minutes);
    // The time that is granted here ends before the next tick.
    assert!(server.makes(&mut session, NOON + HOUR - 2 * SECOND));
    assert!([SECOND / 2, 9 * SECOND].iter().all(|after| !server.makes(&mut session, NOON + HOUR + after)));
}

#[test]
fn a_tick_that_begins_in_skipped_time_is_closed() {
    let minutes = minutes();
    let (server, mut session) = after_a_clock_that_was_ahead(&minutes);
    assert!(server.makes(&mut session, NOON + 120 * SECOND));
    assert!(!server.makes(&mut session, NOON + HOUR + 30 * SECOND));
    assert!(server.makes(&mut session, NOON + HOUR + 60 * SECOND));
}

/// A tick of sno begins unused, and ends in skipped time that was used.
#[test]
fn a_unit_that_reaches_into_skipped_time_is_not_gone_back_to() {
    let server = One::at_noon();
    let mut session = server.session(twitter());
    assert!(server.makes(&mut server.of_sno(), NOON + 2000) && server.makes(&mut server.of_caller(7), NOON + 2000));
    assert_eq!(server.accept(NOON - 1000), NOON - 1000);
    assert!(server.makes(&mut session, NOON + 500));
    assert!(!server.makes(&mut server.of_sno(), NOON + 400) && !server.makes(&mut server.of_caller(7), NOON + 400));
}

/// A sno was made in the past with the other tick-tock bit. That time does not become free when the clock is accepted.
#[test]
fn a_unit_that_a_sno_goes_back_to_counts_as_used() {
    let server = One::at_noon();
    let past = NOON + HOUR / 2;
    let mut session = server.of_sno();
    for now in [NOON, NOON + HOUR, past] {
        assert!(server.makes(&mut session, now));
    }
    assert_eq!(server.accept(past), past + AHEAD);
    let mut session = server.of_sno();
    assert!(server.makes(&mut session, past + 60 * SECOND) && !server.makes(&mut session, past));
}

#[test]
fn accepting_the_clock_opens_unused_time_only() {
    let server = One::at_noon();
    let mut session = server.session(twitter());
    assert!(server.makes(&mut session, NOON) && server.makes(&mut session, NOON + HOUR));
    assert_eq!(server.accept(NOON), NOON + AHEAD);
    assert!(!server.makes(&mut server.session(twitter()), NOON));
    assert!(server.makes(&mut server.session(twitter()), NOON + AHEAD));
}
