//! Generators with scripted clocks: the IDs of the original implementations, and every answer that a generator can give.

use std::cell::Cell;

use flake_core::{
    Answer, BUILTIN, Cursors, Definition, Error, Field, Generator, IdSource, Lanes, Layout, Node, Numbers, OwnCursors,
    Part, Parts, SnoSource, built_in, is_always_built_in,
};

/// A generator, and the cursors that it takes from.
struct Session<'a> {
    generator: Generator<&'a Layout>,
    cursors: OwnCursors,
}

thread_local!(static DRAWN: Cell<u64> = const { Cell::new(0) });

impl<'a> Session<'a> {
    /// A session that begins above the tick that contains `now`.
    fn above(layout: &'a Layout, lanes: &Lanes, now: i64) -> Self {
        let generator = Generator::start(layout, lanes, 0, now + 1);
        Self { generator, cursors: OwnCursors::new(lanes) }
    }

    fn next(&mut self, now: i64) -> Answer {
        self.generator.next(now, &self.cursors, || panic!("no random bits here"))
    }

    fn at(&mut self, unix_ms: i64) -> Answer {
        self.next(unix_ms * 1000)
    }
}

/// All IDs of a worker in one lane and one step, as original generators have them.
fn whole_worker(layout: &Layout, worker: u64) -> Lanes {
    let (workers, sequences) = (Numbers { first: worker, count: 1 }, Numbers { first: 0, count: layout.sequences() });
    Lanes { workers, sequences, count: 1, steps: 1, ids_per_step: layout.sequences(), are_ordered: true }
}

/// A built-in layout with another epoch, in milliseconds.
fn with_epoch(name: &str, epoch_ms: i64) -> Layout {
    let layout = built_in(name).unwrap();
    let fields: Vec<Field> = layout.fields().to_vec();
    Layout::new(name.to_owned(), epoch_ms * 1000, layout.tick_length(), fields).unwrap()
}

/// They have no bit that tells the IDs apart.
#[test]
fn layouts_do_not_go_back() {
    let twitter = built_in("twitter").unwrap();
    let now = twitter.start_of(1_000_000);
    let mut session = Session::above(twitter, &whole_worker(twitter, 7), now);
    assert!(matches!(session.next(now + 5000), Answer::Issue(_)));
    assert!(!session.generator.step_back(now + 1000, &session.cursors));
    assert_eq!(session.cursors.steps_back(), 0);
}

/// Readings of the clock, each with the ID that was made.
type Trace = &'static [(i64, u64)];

/// The original implementations have made these IDs when their clocks showed these milliseconds.
#[test]
fn generators_follow_the_traces_of_the_originals() {
    let si = with_epoch("si", 1600000000000);
    let [snowflake, base64id, uniqueid] = ["snowflake", "base64id", "uniqueid"].map(|name| built_in(name).unwrap());
    let traces: [(&Layout, u64, Trace); 4] = [
        (
            snowflake,
            67,
            &[
                (1640995200000, 132271570944274432),
                (1640995200000, 132271570944274433),
                (1640995200001, 132271570948468736),
                (1640995200001, 132271570948468737),
                (1640995200001, 132271570948468738),
                (1640995200007, 132271570973634560),
            ],
        ),
        (
            uniqueid,
            3 << 6 | 7,
            &[
                (1700000000000, 0x0016a7f3d1800073),
                (1700000000000, 0x0016a7f3d1810073),
                (1700000000001, 0x8016a7f3d1800073),
                (1700000000001, 0x8016a7f3d1810073),
                (1700000000009, 0x9016a7f3d1800073),
            ],
        ),
        (
            &si,
            5,
            &[
                (1700000000000, 819200000001280),
                (1700000000000, 819200000001281),
                (1700000000000, 819200000001282),
                (1700000000001, 819200000009475),
                (1700000000001, 819200000009476),
                (1700000000005, 819200000042245),
            ],
        ),
        (
            base64id,
            7,
            &[
                (1700000000000, 48355318802938368),
                (1700000000100, 48355318802938881),
                (1700000000999, 48355318802939394),
                (1700000001000, 48355319070851075),
                (1700000001001, 48355319070851588),
            ],
        ),
    ];
    for (layout, worker, trace) in traces {
        let mut session = Session::above(layout, &whole_worker(layout, worker), (trace[0].0 - 1) * 1000);
        let mut last: Option<Parts> = None;
        for (number, &(clock, original)) in (0..).zip(trace) {
            // The random bits of base64id are those that the original has drawn.
            let answer = session.generator.next(clock * 1000, &session.cursors, || DRAWN.get());
            let (id, of_original) = (issued(answer), layout.unpack(original).unwrap());
            let parts = layout.unpack(id).unwrap();
            if ["snowflake", "uniqueid"].contains(&layout.name()) {
                assert_eq!(id, original, "{} at {clock}, ID {number}", layout.name());
            }
            // The sequence of the other originals goes through the ticks. Here it begins anew in each tick.
            assert_eq!(Parts { sequence: of_original.sequence, ..parts }, of_original);
            if let Some(last) = last.filter(|last| last.tick == parts.tick) {
                assert_eq!(parts.sequence, (last.sequence + 1) % layout.sequences());
            }
            last = Some(parts);
            DRAWN.set(DRAWN.get() + 1);
        }
        DRAWN.set(0xE00);
    }
}

#[test]
fn a_clock_that_steps_back_leaves_the_state() {
    let layout = built_in("snowflake").unwrap();
    let mut session = Session::above(layout, &whole_worker(layout, 67), 1640995199999 * 1000);
    assert_eq!(session.at(1640995200000), Answer::Issue(132271570944274432));
    assert_eq!(session.at(1640995200000), Answer::Issue(132271570944274433));
    // Before the generator began.
    for clock in [1640995199999 * 1000, 1540995199999 * 1000, i64::MIN] {
        assert_eq!(session.next(clock), Answer::Closed { until: 1640995200000 * 1000 });
    }
    assert_eq!(session.at(1640995200000), Answer::Issue(132271570944274434));
    assert_eq!(session.at(1640995200001), Answer::Issue(132271570948468736));
    // It does not go back to a tick of its own either.
    assert_eq!(session.at(1640995200000), Answer::Behind { until: 1640995200001 * 1000 });
    assert_eq!(session.at(1640995200001), Answer::Issue(132271570948468737));
}

#[test]
fn a_used_up_lane_waits_even_while_the_clock_goes_back() {
    let layout = built_in("snowflake").unwrap();
    let mut session = Session::above(layout, &whole_worker(layout, 67), 1640995199999 * 1000);
    let ids: Vec<Answer> = (0..4096).map(|_| session.at(1640995200000)).collect();
    assert_eq!(ids[4095], Answer::Issue(132271570944278527));
    let wait = Answer::Wait { until: 1640995200001 * 1000 };
    assert_eq!(session.at(1640995200000), wait);
    // The listing that is commonly copied stops waiting here, and issues this millisecond's IDs twice.
    assert_eq!(session.at(1640995199999), Answer::Closed { until: 1640995200000 * 1000 });
    assert_eq!(session.at(1640995200000), wait);
    assert_eq!(session.at(1640995200001), Answer::Issue(132271570948468736));
    assert_eq!(session.generator.issued(), 4097);
}

#[test]
fn time_before_the_epoch_and_after_the_last_tick_is_refused() {
    let layout = built_in("twitter").unwrap();
    let end = layout.start_of(layout.last_tick()) + layout.tick_length();
    let tick_at = |now| layout.ticks().tick_to_generate_in(now, layout.name());
    let (before, after) = (tick_at(layout.epoch() - 1), tick_at(end));
    assert!(matches!(before, Err(Error::BeforeEpoch { epoch, .. }) if epoch == layout.epoch()), "{before:?}");
    assert!(matches!(after, Err(Error::Exhausted { end: at, .. }) if at == end), "{after:?}");
    let mut session = Session::above(layout, &whole_worker(layout, 0), end - 2000);
    assert_eq!(session.next(end - 1), Answer::Issue(layout.last_tick() << 22));
    assert_eq!(session.next(end), Answer::Exhausted);
    assert_eq!(session.next(i64::MAX), Answer::Exhausted);
    assert_eq!(session.next(end - 1), Answer::Issue((layout.last_tick() << 22) | 1));
}

fn issued(answer: Answer) -> u64 {
    let Answer::Issue(id) = answer else { panic!("{answer:?}") };
    id
}

/// The second layout was computed so that XXH3 gives it the hash of the first one.
#[test]
fn no_definition_has_the_key_of_another_layout() {
    let layout = |epoch, tick| {
        let json = format!(r#"{{"like": "base64id", "epoch": "{epoch}", "tick": "{tick}"}}"#);
        Definition::from_json("made", &json).unwrap().layout("made").unwrap()
    };
    let of_victim = layout("2020-01-01T00:00:00Z", "10s");
    let twin = layout("-003550-12-16T05:09:52.628969Z", "2066345149520216566us");
    assert!(!of_victim.same_bits(&twin), "the two layouts must differ");
    assert_ne!((&of_victim).key(), (&twin).key());
    assert!(
        (0..1000)
            .chain([32767])
            .all(|partition| SnoSource { partition: Some(partition) }.key() >> 63 != (&twin).key() >> 63)
    );
}

/// A hash must never be one of the small numbers.
#[test]
fn keys_show_whether_a_layout_is_built_in_custom_or_sno() {
    let kind = |key: u64| key >> 62;
    assert!(BUILTIN.iter().all(|layout| kind(layout.key()) == 1), "the key of a built-in layout must have kind 1");
    let snos = [None, Some(0), Some(32767)].map(|partition| SnoSource { partition }.key());
    assert!(
        snos.iter().all(|&key| kind(key) >= 2) && snos[0] != snos[1] && snos[1] != snos[2],
        "keys of snos: {snos:?}"
    );
    for epoch in 1..100 {
        let fields = built_in("twitter").unwrap().fields().to_vec();
        let [one, other] = ["one", "other"].map(|name| Layout::new(name, epoch, 1000, fields.clone()).unwrap());
        assert_eq!(kind((&one).key()), 0);
        assert_eq!((&one).key(), (&other).key());
    }
}

/// No custom layout can have these names, and sessions of several versions identify their generators by these numbers. New layouts
/// are added after them and counted in LATER.
#[test]
fn the_layouts_of_the_first_release() {
    let first = "twitter snowflake si si_single uniqueid uniqueid_v3 base64id discord instagram mastodon sonyflake sonyflake_v2 tsid \
        leaf baidu seata yitter pgedge pgedge_1_0 influxdb weibo linkedin cockroach simpleflake pgactive";
    let first: Vec<_> = first.split_whitespace().collect();
    assert!(first.iter().all(|name| is_always_built_in(name)), "not built in: one of {first:?}");
    assert!(!is_always_built_in("nobody"));
    for (number, &name) in first.iter().enumerate() {
        assert_eq!(BUILTIN[number].name(), name);
        let same = first.iter().position(|other| built_in(other).unwrap().same_bits(&BUILTIN[number])).unwrap();
        assert_eq!((&BUILTIN[number]).key(), 1 << 62 | same as u64);
    }
}

/// 'leaf' has the bits of 'twitter'. A layout with fewer timestamp bits in the same place ends earlier.
#[test]
fn a_generator_continues_for_layouts_of_the_same_bits() {
    let twitter = built_in("twitter").unwrap();
    let mut fields = twitter.fields().to_vec();
    fields[0].bits = 40;
    let short = Layout::new("short", twitter.epoch(), 1000, fields).unwrap();
    assert!(short.same_bits(twitter));
    assert_eq!((&short).key(), twitter.key());
    let end = short.start_of(short.last_tick()) + 1000;
    let lanes = Lanes::new(twitter, Part::whole(Node::new(0, 1).unwrap())).unwrap();
    let mut session = Session::above(twitter, &lanes, end - 3000);
    issued(session.next(end - 1));
    session.generator.adopt(&short);
    issued(session.next(end - 1));
    assert_eq!(session.next(end), Answer::Exhausted);
    session.generator.adopt(twitter);
    issued(session.next(end));
}
