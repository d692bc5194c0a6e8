//! The ledger's state alone: no window contains time that others have used, whatever happens in whatever order.

use flake_core::Window;
use flake_core::ledger::block::FilePart;
use flake_core::ledger::bound::Bound;
use flake_core::ledger::marks::{Author, Mark, Marks};
use flake_core::ledger::part_time::AHEAD;
use flake_core::ledger::state::{Facts, Ledger};
use flake_core::ledger::used::Used;
use proptest::prelude::*;

mod facts;
use facts::{ME, NOON, PART, SECOND, facts, file, node, of, on};

const HOUR: i64 = 3600 * SECOND;

/// The facts of the next start.
fn again(file: &(Marks, FilePart)) -> Facts<'_> {
    Facts { chance: (51, 61), ..facts(Some(file)) }
}

/// A ledger that has read its file and granted time at noon.
fn open() -> Ledger {
    let file = file(of(ME, Used::before(NOON - SECOND)), None);
    Ledger::begin(&facts(Some(&file))).granted(NOON, NOON + 1).unwrap()
}

#[test]
fn time_is_granted_ahead() {
    let ledger = open();
    assert_eq!(
        (ledger.time.era, ledger.time.floor, ledger.time.window.unwrap().until),
        (1, NOON - SECOND, NOON + AHEAD)
    );
    assert_eq!(ledger.time.window.unwrap(), Window { from: NOON, until: NOON + AHEAD, skip: i64::MAX });
    let later = ledger.granted(NOON + SECOND, NOON + SECOND + 1).unwrap();
    assert_eq!((later.time.era, later.time.window.unwrap().until), (1, NOON + SECOND + AHEAD));
    // The same after an hour, because nothing was used since.
    let idle = ledger.granted(NOON + HOUR, NOON + HOUR + 1).unwrap();
    assert_eq!((idle.time.era, idle.time.window.unwrap().from, idle.time.floor), (1, NOON + HOUR, NOON - SECOND));
    assert_eq!(idle.time.used.gaps().len(), 2);
    assert_eq!(ledger.granted(NOON - 1, NOON), Err(NOON), "the clock has gone back");
}

#[test]
fn the_next_ids_are_of_the_window_if_the_clock_is_set_back_before_it() {
    let later = open().granted(NOON + HOUR, NOON + HOUR + 1).unwrap().time;
    let from = NOON + HOUR;
    let next = |now| (later.next_free(now), later.next_made(now));
    assert_eq!([next(from), next(from + 1)], [(from, from), (from + 1, from + 1)]);
    assert_eq!(next(from - 1), (from, from - 1), "a sno may be of the time before the window");
    assert_eq!(next(NOON - HOUR), (from, NOON - SECOND), "but not before the era's first one");
    let after = from + AHEAD;
    assert_eq!(next(after), (after, after));
    // Time was used after the window, such as by a clock that was ahead.
    let page = later.having_read(&Used::before(NOON).with(after + SECOND, after + HOUR), i64::MIN);
    assert_eq!((page.next_free(after), page.next_made(after)), (after + HOUR, after + HOUR));
}

#[test]
fn an_exit_note_gives_back_the_end_of_the_window() {
    let left = |free_from| {
        let ledger = open();
        let note = ledger.time.exit_note(1, free_from);
        let file = file(of(ledger.me, ledger.time.used), note);
        Ledger::begin(&again(&file))
    };
    assert_eq!(left(NOON + 500).time.used.until(), NOON + 500);
    // A tick had begun before the window.
    assert_eq!([left(NOON - 500), left(i64::MIN)].map(|ledger| ledger.time.used.until()), [NOON + 1; 2]);
    let noted = file(of(open().me, open().time.used), open().time.exit_note(1, NOON + 500));
    let until = |beginnings: Facts<'_>| Ledger::begin(&beginnings).time.used.until();
    assert_eq!(until(Facts { boot: Some(2), ..again(&noted) }), NOON + AHEAD);
    assert_eq!(until(Facts { boot: None, ..again(&noted) }), NOON + AHEAD);
    assert_eq!(until(Facts { node: node(0, 3), ..again(&noted) }), NOON + AHEAD, "another number of nodes");
    // Nobody has used anything of these parts.
    assert_eq!(until(Facts { turns: on(2, 2), ..again(&noted) }), i64::MIN);
    assert_eq!(until(Facts { node: node(1, 2), ..again(&noted) }), i64::MIN);
    // The same turn after four promotions: what the file knows counts as used, and the note does not count.
    assert_eq!(until(Facts { turns: on(5, 1), ..again(&noted) }), NOON + AHEAD);
}

#[test]
fn a_file_of_the_same_timeline_keeps_its_incarnation() {
    let known = file(of(ME, Used::before(NOON)), None);
    let me = |beginnings: Facts<'_>| Ledger::begin(&beginnings).me;
    let start = 60;
    assert_eq!(me(facts(Some(&known))), Author { start, ..ME });
    assert_eq!(me(Facts { node: node(1, 2), ..facts(Some(&known)) }), Author { part: (9, 16), incarnation: 5, start });
    assert_eq!(me(facts(None)), Author { part: PART, incarnation: 50, start });
    // A promotion draws a new incarnation.
    assert_eq!(me(Facts { turns: on(2, 1), ..facts(Some(&known)) }).incarnation, 50);
    // A server that takes over a number keeps its incarnation, although its file has the other server's marks.
    let mut both = known.0;
    both.set(Mark { by: Author { part: (9, 16), incarnation: 6, start: 8 }, used: Used::before(NOON) });
    let both = file(both, None);
    assert_eq!(me(Facts { node: node(1, 2), ..facts(Some(&both)) }).incarnation, 5);
}

/// Another incarnation has used time of the part: the file was lost, the server is a copy, or it has the turn of four promotions ago.
#[test]
fn a_mark_of_its_part_by_another_incarnation_counts_without_a_margin() {
    let new = Ledger::begin(&facts(None));
    let others = of(ME, Used::before(NOON - HOUR));
    let met = new.having_read(&others);
    assert_eq!(met.granted(NOON, NOON + 1).map(|ledger| ledger.time.window.unwrap().from), Ok(NOON), "at once");
    let ahead = new.having_read(&of(ME, Used::before(NOON + SECOND)));
    assert_eq!(ahead.granted(NOON, NOON + 1), Err(NOON + SECOND));
    let window = ahead.granted(NOON + SECOND, NOON + SECOND + 1).unwrap().time.window.unwrap();
    assert_eq!(window, Window { from: NOON + SECOND, until: NOON + SECOND + AHEAD, skip: i64::MAX });
    let opened = new.granted(NOON, NOON + 1).unwrap();
    assert!(opened.having_read(&others).time.window.is_some(), "the mark lies before the window");
    let closed = opened.having_read(&of(ME, Used::before(NOON + 2)));
    assert!(
        closed.time.window.is_none() && closed.time.era == opened.time.era + 1,
        "the page must end the era: {closed:?}"
    );
    // A number of the server before counts as well, as soon as it is the server's.
    let known = file(of(ME, Used::before(NOON - SECOND)), None);
    let renumbered = Ledger::begin(&Facts { node: node(1, 2), ..again(&known) });
    let met = renumbered.having_read(&of(Author { part: (9, 16), incarnation: 9, start: 8 }, Used::before(NOON + 7)));
    assert_eq!(met.granted(NOON, NOON + 1), Err(NOON + 7));
}

#[test]
fn a_page_that_touches_the_window_ends_its_era() {
    let ledger = open();
    let meets =
        |from, to| ledger.having_read(&of(Author { incarnation: 5, ..ME }, Used::before(from).with(to, to + 1)));
    assert!(meets(NOON + 1, NOON + HOUR).time.window.is_none());
    assert!(meets(NOON - HOUR, NOON + 1).time.window.is_none());
    let ahead = meets(NOON - HOUR, NOON + HOUR);
    assert!(
        ahead.time.window.is_some() && ahead.time.era == ledger.time.era,
        "the window must stay open in its era: {ahead:?}"
    );
    assert_eq!(ahead.time.window.unwrap().skip, NOON + HOUR, "its end has come nearer");
    assert_eq!(ahead.granted(NOON + HOUR - 500, NOON + HOUR + 1), Err(NOON + HOUR + 1));
}

#[test]
fn an_accepted_clock_makes_ids_in_gaps_until_it_leaves_them() {
    let ahead = open().granted(NOON + HOUR, NOON + HOUR + 1).unwrap();
    let now = NOON + 60 * SECOND;
    assert_eq!(ahead.granted(now, now + 1), Err(NOON + HOUR));
    let accepted = ahead.accepted(now);
    assert!(
        accepted.time.window.is_none() && accepted.time.era > ahead.time.era,
        "an accepted clock must begin an era: {accepted:?}"
    );
    let back = accepted.granted(now, now + 1).unwrap();
    assert_eq!(
        (back.time.window.unwrap().from, back.time.window.unwrap().skip, back.time.floor),
        (now, NOON + HOUR, now)
    );
    assert_eq!(back.accepted(now), back, "nothing keeps it from going on");
    // The clock has left the gap and goes back, which was not accepted.
    let left = back.granted(NOON + 2 * HOUR, NOON + 2 * HOUR + 1).unwrap();
    let later = now + 60 * SECOND;
    assert_eq!(left.granted(later, later + 1), Err(NOON + 2 * HOUR));
    let known = file(of(left.me, left.time.used), None);
    let restarted = Ledger::begin(&again(&known));
    assert_eq!(restarted.granted(later, later + 1), Err(left.time.window.unwrap().until));
    // Generators that began above all used time begin again, although no window was open.
    assert!(accepted.accepted(now + SECOND).time.era > accepted.time.era, "another acceptance must begin another era");
}

/// Horizons of another incarnation bind this one until they are recalled.
#[test]
fn accepting_the_clock_recalls_horizons() {
    let mut others = Marks::default();
    others.bound = Bound { recalls: 2, instant: NOON + HOUR, incarnation: 9 };
    for ledger in [open(), Ledger::begin(&facts(None))] {
        let bound = ledger.having_read(&others);
        assert_eq!(bound.horizons.announced(), NOON + HOUR);
        let accepted = bound.accepted(NOON);
        assert_eq!((accepted.horizons.bound.recalls, accepted.horizons.announced()), (3, NOON));
        assert!(
            accepted.time.window.is_none() && accepted.time.era > bound.time.era,
            "an accepted clock must begin an era: {accepted:?}"
        );
        assert_eq!(accepted.having_read(&others).horizons.announced(), NOON);
    }
    // The other incarnation's bound is lower than this one's, and still binds.
    others.bound = Bound { recalls: 0, instant: NOON + SECOND, incarnation: 9 };
    assert_eq!(open().binding().having_read(&others).horizons.announced(), NOON + SECOND);
    let own = open().binding();
    assert_eq!((own.horizons.bound.instant, own.horizons.announced()), (NOON + AHEAD, i64::MIN));
    assert_eq!(own.accepted(NOON + 1), own);
}

/// A server whose file is older than a recall learns of it from the page of another database. The horizons that it has announced
/// until then still bind the next primary.
#[test]
fn a_recall_that_is_learned_late_takes_back_nothing_that_was_announced() {
    let [mut others, mut recalled] = [Marks::default(), Marks::default()];
    others.bound = Bound { recalls: 0, instant: NOON + HOUR, incarnation: 9 };
    recalled.bound = Bound { recalls: 1, instant: NOON, incarnation: 9 };
    let read = |ledger: Ledger, marks| ledger.having_read(marks);
    let learned = |ledger| {
        let bound = read(ledger, &recalled).horizons.bound;
        (bound.recalls, bound.instant)
    };
    assert_eq!(learned(open().binding()), (1, NOON + AHEAD), "its own horizons");
    assert_eq!(
        learned(read(open(), &others).binding()),
        (1, NOON + HOUR),
        "horizons of another server that it has announced"
    );
    assert_eq!(learned(read(open(), &others)), (1, NOON), "it has announced none");
    // A restarted server must know which horizons it has announced, whoever wrote them.
    let mut known = file(of(ME, Used::before(NOON)), None);
    known.0.bound = others.bound;
    let begun = Ledger::begin(&facts(Some(&known)));
    for asking in [begun.binding(), read(open(), &others).binding(), read(open().binding(), &others)] {
        assert_eq!((asking.horizons.bound.incarnation, asking.horizons.announced()), (ME.incarnation, NOON + HOUR));
        assert_eq!((read(asking, &others), asking.binding()), (asking, asking), "nothing is new");
    }
}

/// If sessions ask for horizons, granted time is a bound in the file and in the page.
#[test]
fn granted_time_binds_other_servers_once_horizons_are_asked_for() {
    let until = |ledger: &Ledger| (ledger.horizons.bound.instant, ledger.horizons.bound.incarnation);
    let quiet = open();
    assert_eq!(quiet.horizons.bound, Bound::NONE);
    let mut page = of(quiet.me, quiet.time.used);
    assert!(quiet.is_in(&page) && !quiet.binding().is_in(&page), "the page does not say that horizons bind");
    page.bound = quiet.binding().horizons.bound;
    assert!(quiet.binding().is_in(&page), "the page with the bound must contain everything");
    assert_eq!(until(&quiet.binding()), (NOON + AHEAD, ME.incarnation));
    let later = quiet.binding().granted(NOON + HOUR, NOON + HOUR + 1).unwrap();
    assert_eq!(until(&later), (NOON + HOUR + AHEAD, ME.incarnation));
}

/// If no window is open, an announced horizon binds servers some seconds ahead at once, but no further than time was used.
#[test]
fn an_announced_instant_binds_other_servers() {
    assert_eq!(open().settled(NOON + 1), (open(), NOON + 1));
    assert_eq!(open().settled(NOON + HOUR).1, NOON + AHEAD);
    let closed = Ledger::begin(&facts(Some(&file(of(ME, Used::before(NOON + HOUR)), None))));
    let (binding, instant) = closed.settled(NOON);
    assert_eq!(
        (instant, binding.horizons.bound.instant, binding.horizons.bound.incarnation),
        (NOON, NOON + AHEAD, ME.incarnation)
    );
    assert_eq!(binding.settled(NOON + AHEAD), (binding, NOON + AHEAD));
    let (binding, instant) = closed.settled(NOON + 2 * HOUR);
    assert_eq!((instant, binding.horizons.bound.instant), (NOON + HOUR, NOON + HOUR));
}

#[test]
fn start_above_is_never_taken_back() {
    let above = open().starting_above(NOON + HOUR);
    assert!(above.time.window.is_none() && above.time.used.includes(i64::MIN, NOON + HOUR));
    assert_eq!(above.starting_above(NOON + HOUR), above);
    let mut known = file(of(ME, Used::before(NOON)), None);
    known.0.above = NOON + HOUR;
    let renumbered = Ledger::begin(&Facts { node: node(1, 2), ..again(&known) });
    assert_eq!(renumbered.granted(NOON, NOON + 1), Err(NOON + HOUR), "under another number");
    assert_eq!(above.accepted(NOON).granted(NOON, NOON + 1), Err(NOON + HOUR), "nothing takes it back");
    let ahead = open().granted(NOON + HOUR, NOON + HOUR + 1).unwrap();
    assert!(
        ahead.starting_above(NOON + HOUR / 2).time.used.includes(i64::MIN, NOON + HOUR / 2),
        "also below time that was used"
    );
}

#[test]
fn a_server_without_its_file_is_above_its_start_but_not_above_a_clock_that_was_ahead() {
    let begun = |started_at| Ledger::begin(&Facts { started_at, ..facts(None) });
    let floor = |ledger: Ledger, now| ledger.granted(now, now + 1).unwrap().time.floor;
    assert_eq!(floor(begun(None), NOON + SECOND), NOON + 1);
    assert_eq!(floor(begun(Some(NOON - SECOND)), NOON + SECOND), NOON - SECOND + 1);
    assert_eq!(floor(begun(None), NOON - HOUR), NOON - HOUR + 1);
}

/// Time that a sno goes back to counts as used, and its window contains no other time.
#[test]
fn a_generator_goes_back_to_the_floor_at_most() {
    let ledger = open();
    let used = ledger.granted(NOON + 100 * SECOND, NOON + 100 * SECOND + 1).unwrap();
    let now = NOON + 50 * SECOND;
    let (back, window) = used.gone_back(now).unwrap();
    assert_eq!((window.from, window.until), (now, now + AHEAD));
    assert!(back.time.used.includes(now, now + AHEAD) && !back.time.used.includes(now - 1, now));
    let (same, window) = used.gone_back(NOON + SECOND).unwrap();
    assert_eq!((same, window.from, window.until), (used, NOON, NOON + AHEAD));
    assert_eq!(used.gone_back(NOON - 2 * SECOND), Err(NOON - SECOND));
}

/// A full set of gaps once broke this property: only one era uses the time of a window.
#[derive(Debug, Clone)]
enum Step {
    Grant(i64),
    Accept(i64),
    GoBack(i64),
    Take { incarnation: u32, from: i64, length: i64 },
    Above(i64),
    Restart,
}

fn any_step() -> impl Strategy<Value = Step> {
    let instant = || prop_oneof![(0..400i64).prop_map(|at| at * 250_000), (0..100 * SECOND)];
    prop_oneof![
        8 => instant().prop_map(Step::Grant),
        6 => instant().prop_map(Step::Accept),
        4 => instant().prop_map(Step::GoBack),
        2 => (5u32..7, instant(), 0..4 * SECOND).prop_map(|(incarnation, from, length)| Step::Take { incarnation, from, length }),
        1 => instant().prop_map(Step::Above),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]
    #[test]
    fn no_window_meets_time_that_another_era_has_used(steps in prop::collection::vec(any_step(), 1..80)) {
        let mut ledger = open();
        // All granted windows with their eras, and the marks of pages.
        let era = |ledger: &Ledger| (ledger.me.start, ledger.time.era);
        let mut windows: Vec<((u32, u64), Window)> = vec![(era(&ledger), ledger.time.window.unwrap())];
        let mut others: Vec<(i64, i64)> = vec![(i64::MIN, NOON - SECOND)];
        for (step, start) in steps.into_iter().zip(100..) {
            let before = ledger.time.used;
            let mut handed_out = None;
            match step {
                Step::Grant(at) => {
                    if let Ok(new) = ledger.granted(NOON + at, NOON + at + 1) {
                        ledger = new;
                        handed_out = Some(ledger.time.window.unwrap());
                    }
                }
                Step::Accept(at) => ledger = ledger.accepted(NOON + at),
                Step::GoBack(at) => {
                    if ledger.time.window.is_some() && NOON + at < ledger.time.window.unwrap().from
                        && let Ok((new, window)) = ledger.gone_back(NOON + at)
                    {
                        ledger = new;
                        handed_out = Some(window);
                    }
                }
                Step::Take { incarnation, from, length } => {
                    let (from, to) = (NOON + from, NOON + from + length);
                    let marks = of(Author { incarnation, start: 1, ..ME }, Used::NONE.with(from, to));
                    ledger = ledger.having_read(&marks);
                    others.push((from, to));
                }
                Step::Above(at) => {
                    ledger = ledger.starting_above(NOON + at);
                    others.push((i64::MIN, NOON + at));
                }
                Step::Restart => {
                    let known = file(of(ledger.me, ledger.time.used), None);
                    ledger = Ledger::begin(&Facts { chance: (50, start), ..facts(Some(&known)) });
                }
            }
            prop_assert!(ledger.time.used.contains(&before), "used time only grows");
            for &(from, to) in &others {
                prop_assert!(ledger.time.used.includes(from, to));
            }
            if let Some(window) = handed_out {
                let meets = |from: i64, to: i64| window.from.max(from) < window.until.min(to);
                prop_assert!(ledger.time.used.includes(window.from, window.until));
                prop_assert!(window.from >= ledger.time.floor || window == ledger.time.window.unwrap());
                for &(of, other) in windows.iter().filter(|(of, _)| *of != era(&ledger)) {
                    prop_assert!(!meets(other.from, other.until), "{window:?} meets {other:?} of era {of:?}");
                }
                for &(from, to) in &others {
                    prop_assert!(!meets(from, to), "{window:?} meets {from} to {to}");
                }
                windows.push((era(&ledger), window));
            }
        }
    }
}
