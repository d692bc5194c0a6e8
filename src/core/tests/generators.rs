//! Generators with scripted clocks: the IDs of the original implementations, and every answer that a generator can give.

use std::cell::Cell;

use flake_core::{
    Answer, BUILTIN, Definition, Error, Field, Generator, IdSource, Layout, Node, Numbers, Remaining, SequenceRule,
    Share, Slot, SnoSource, Start, built_in, is_always_built_in,
};

/// A generator that begins above the tick that contains `now`.
fn above<S: IdSource>(source: S, share: &Share, now: i64, position: u64) -> Generator<S> {
    Generator::start(source, share, Start { free_from: now + 1, resumed: None }, i64::MIN, position)
}

/// All IDs of a worker in one step, as original generators have them.
fn whole_worker(layout: &Layout, worker: u64) -> Share {
    let (workers, sequences) = (Numbers { first: worker, count: 1 }, Numbers { first: 0, count: layout.sequences() });
    Share::of(layout.name(), workers, sequences, Slot::new(0, 1).unwrap(), 1).unwrap()
}

/// A built-in layout with another epoch, in milliseconds.
fn with_epoch(name: &str, epoch_ms: i64) -> Layout {
    let layout = built_in(name).unwrap();
    let fields: Vec<Field> = layout.fields().to_vec();
    Layout::new(name.to_owned(), epoch_ms * 1000, layout.tick_length(), fields, layout.rule).unwrap()
}

fn at(generator: &mut Generator<&Layout>, unix_ms: i64) -> Answer {
    generator.next(unix_ms * 1000, || panic!("no random bits here"))
}

#[test]
fn a_generator_follows_the_textbooks_trace() {
    let layout = built_in("snowflake").unwrap();
    let mut generator = above(layout, &whole_worker(layout, 67), 1640995199999 * 1000, 0);
    for (clock, id) in [
        (1640995200000, 132271570944274432),
        (1640995200000, 132271570944274433),
        (1640995200001, 132271570948468736),
        (1640995200001, 132271570948468737),
        (1640995200001, 132271570948468738),
        (1640995200007, 132271570973634560),
    ] {
        assert_eq!(at(&mut generator, clock), Answer::Issue(id));
    }
}

#[test]
fn a_clock_that_steps_back_leaves_the_state() {
    let layout = built_in("snowflake").unwrap();
    let mut generator = above(layout, &whole_worker(layout, 67), 1640995199999 * 1000, 0);
    assert_eq!(at(&mut generator, 1640995200000), Answer::Issue(132271570944274432));
    assert_eq!(at(&mut generator, 1640995200000), Answer::Issue(132271570944274433));
    let behind = Answer::ClockBehind { until: 1640995200000 * 1000 };
    for clock in [1640995199999 * 1000, 1540995199999 * 1000, i64::MIN] {
        assert_eq!(generator.next(clock, || 0), behind);
    }
    assert_eq!(at(&mut generator, 1640995200000), Answer::Issue(132271570944274434));
    assert_eq!(at(&mut generator, 1640995200001), Answer::Issue(132271570948468736));
    // It does not go back to a tick of its own either.
    assert_eq!(at(&mut generator, 1640995200000), Answer::ClockBehind { until: 1640995200001 * 1000 });
}

#[test]
fn a_used_up_share_waits_even_while_the_clock_goes_back() {
    let layout = built_in("snowflake").unwrap();
    let mut generator = above(layout, &whole_worker(layout, 67), 1640995199999 * 1000, 0);
    let ids: Vec<Answer> = (0..4096).map(|_| at(&mut generator, 1640995200000)).collect();
    assert_eq!(ids[4095], Answer::Issue(132271570944278527));
    let wait = Answer::Wait { until: 1640995200001 * 1000 };
    assert_eq!(at(&mut generator, 1640995200000), wait);
    // The listing that is commonly copied stops waiting here, and issues this millisecond's IDs twice.
    assert_eq!(at(&mut generator, 1640995199999), Answer::ClockBehind { until: 1640995200000 * 1000 });
    assert_eq!(at(&mut generator, 1640995200000), wait);
    assert_eq!(at(&mut generator, 1640995200001), Answer::Issue(132271570948468736));
    assert_eq!(generator.issued(), 4097);
}

#[test]
fn a_generator_follows_the_trace_of_snowflake_si_and_rolls_through_its_sequence() {
    let layout = with_epoch("si", 1600000000000);
    let mut generator = above(&layout, &whole_worker(&layout, 5), 1699999999999 * 1000, 0);
    for (clock, id) in [
        (1700000000000, 819200000001280),
        (1700000000000, 819200000001281),
        (1700000000000, 819200000001282),
        (1700000000001, 819200000009475),
        (1700000000001, 819200000009476),
        (1700000000005, 819200000042245),
    ] {
        assert_eq!(at(&mut generator, clock), Answer::Issue(id));
    }
    // Six of the next 256 IDs are used. The original's 257th ID of a millisecond is a duplicate; this generator waits.
    let next: Vec<Answer> = (0..256).map(|_| at(&mut generator, 1700000000006)).collect();
    assert_eq!(next[0], Answer::Issue((100000000006 << 13) | (5 << 8) | 6));
    assert_eq!(next[255], Answer::Issue((100000000006 << 13) | (5 << 8) | 5));
    assert_eq!(at(&mut generator, 1700000000006), Answer::Wait { until: 1700000000007 * 1000 });
}

#[test]
fn a_generator_follows_the_trace_of_the_60_bit_id() {
    let layout = built_in("base64id").unwrap();
    let mut generator = above(layout, &whole_worker(layout, 7), 1699999999999 * 1000, 1021);
    thread_local!(static DRAWN: Cell<u64> = const { Cell::new(0) });
    for (random, (clock, id)) in [
        (1700000000000, 48355318802938368),
        (1700000000100, 48355318802938881),
        (1700000000999, 48355318802939394),
        (1700000001000, 48355319070851075),
        (1700000001001, 48355319070851588),
    ]
    .into_iter()
    .enumerate()
    {
        DRAWN.set(random as u64 | 0xE00);
        assert_eq!(generator.next(clock * 1000, || DRAWN.get()), Answer::Issue(id));
    }
    let second = 1700000000000 * 1000;
    // Here the original issues an ID of 1699999999 again.
    assert_eq!(generator.next(second - 1, || 0), Answer::ClockBehind { until: second + 1_000_000 });
}

#[test]
fn a_generator_follows_the_trace_of_the_eight_byte_id() {
    let layout = built_in("uniqueid").unwrap();
    let share = whole_worker(layout, (3 << 6) | 7);
    let mut generator = above(layout, &share, 1699999999999 * 1000, 0);
    for (clock, id) in [
        (1700000000000, 0x0016a7f3d1800073),
        (1700000000000, 0x0016a7f3d1810073),
        (1700000000001, 0x8016a7f3d1800073),
        (1700000000001, 0x8016a7f3d1810073),
        (1700000000009, 0x9016a7f3d1800073),
    ] {
        assert_eq!(at(&mut generator, clock), Answer::Issue(id));
    }
}

#[test]
fn nothing_is_issued_in_the_tick_of_creation() {
    let layout = built_in("base64id").unwrap();
    let mut generator = above(layout, &whole_worker(layout, 0), 1700000000000 * 1000, 0);
    assert_eq!(generator.last_tick_start(), None);
    assert_eq!(generator.next(1700000000999 * 1000, || 0), Answer::Wait { until: 1700000001000 * 1000 });
    assert!(matches!(generator.next(1700000001000 * 1000, || 0), Answer::Issue(_)));
    assert_eq!(generator.last_tick_start(), Some(1700000001000 * 1000));
}

#[test]
fn time_before_the_epoch_and_after_the_last_tick_is_refused() {
    let layout = built_in("si").unwrap();
    let share = whole_worker(layout, 0);
    let end = layout.start_of(layout.last_tick()) + layout.tick_length();
    let tick_at = |now| layout.ticks().tick_to_generate_in(now, layout.name());
    let (before, after) = (tick_at(layout.epoch() - 1), tick_at(end));
    assert!(matches!(before, Err(Error::BeforeEpoch { epoch, .. }) if epoch == layout.epoch()), "{before:?}");
    assert!(matches!(after, Err(Error::Exhausted { end: at, .. }) if at == end), "{after:?}");
    let mut generator = above(layout, &share, end - 2000, 0);
    assert_eq!(generator.next(end - 1, || 0), Answer::Issue(layout.last_tick() << 13));
    assert_eq!(generator.next(end, || 0), Answer::Exhausted);
    assert_eq!(generator.next(i64::MAX, || 0), Answer::Exhausted);
    assert_eq!(generator.next(end - 1, || 0), Answer::Issue((layout.last_tick() << 13) | 1));
}

/// A generator of one of `slots` slots on the only server.
fn of_slot(layout: &Layout, slot: u32, slots: u32, now: i64, position: u64) -> (Share, Generator<&Layout>) {
    let share = Share::new(layout, Node::new(0, 1).unwrap(), Slot::new(slot, slots).unwrap()).unwrap();
    (share, above(layout, &share, now, position))
}

fn issued(answer: Answer) -> u64 {
    let Answer::Issue(id) = answer else { panic!("{answer:?}") };
    id
}

const TICK: i64 = 1_700_000_000_001 * 1000;

#[test]
fn a_session_of_one_server_makes_more_than_4096_ids_per_millisecond() {
    let layout = built_in("twitter").unwrap();
    let (share, mut generator) = of_slot(layout, 3, 122, TICK - 1000, 0);
    let ids: Vec<u64> = (0..share.size()).map(|_| issued(generator.next(TICK, || 0))).collect();
    assert_eq!(ids.len(), 34_335);
    assert!(ids.is_sorted_by(|one, next| one < next));
    assert_eq!(generator.next(TICK + 999, || 0), Answer::Wait { until: TICK + 1000 });
    assert_eq!(layout.rule, SequenceRule::Reset);
}

#[test]
fn a_session_keeps_up_with_the_steps_of_the_clock_and_may_be_ahead_of_them() {
    let layout = built_in("twitter").unwrap();
    let (share, mut generator) = of_slot(layout, 3, 122, TICK - 1000, 0);
    let number = |id: u64| id & 0x3f_ffff;
    let first_of = |step: u64| (step * 122 + 3) * share.ids_per_step;
    assert_eq!(number(issued(generator.next(TICK, || 0))), first_of(0));
    assert_eq!(number(issued(generator.next(TICK + 15, || 0))), first_of(0) + 1);
    // 1000 us * 31 / 63 = 492.06 us
    assert_eq!(number(issued(generator.next(TICK + 492, || 0))), first_of(30));
    assert_eq!(number(issued(generator.next(TICK + 493, || 0))), first_of(31));
    // The clock may go back within the tick.
    assert_eq!(number(issued(generator.next(TICK + 2, || 0))), first_of(31) + 1);
    for _ in 2..share.ids_per_step {
        issued(generator.next(TICK + 493, || 0));
    }
    assert_eq!(number(issued(generator.next(TICK + 493, || 0))), first_of(32));
    assert_eq!(generator.remaining(TICK + 493), Remaining { of_tick: 507, of_step: 524 - 493 });
    assert_eq!(number(issued(generator.next(TICK + 510, || 0))), first_of(32) + 1);
    assert_eq!(number(issued(generator.next(TICK + 999, || 0))), first_of(62));
    assert_eq!(generator.progress().remaining, share.ids_per_step - 1);
}

#[test]
fn a_rolling_sequence_rolls_within_the_steps() {
    let layout = built_in("tsid").unwrap();
    let (share, mut generator) = of_slot(layout, 0, 122, TICK - 1000, 545 * 7 + 540);
    let number = |id: u64| id & 0x3f_ffff;
    let mut at = |into_tick| number(issued(generator.next(TICK + into_tick, || 0)));
    assert_eq!(share.ids_per_step, 545);
    // It begins at the given position, and later continues at the place that it has reached.
    assert_eq!((at(0), at(0)), (540, 541));
    assert_eq!(at(20), 122 * 545 + 542);
    assert_eq!((at(20), at(20)), (122 * 545 + 543, 122 * 545 + 544));
    // The end of the part leads to the next step, and never back.
    assert_eq!((at(20), at(20)), (2 * 122 * 545, 2 * 122 * 545 + 1));
    assert_eq!(at(1000), 2);
    let remaining = share.size() - 3;
    let last = (0..remaining).map(|_| at(1000)).last().unwrap();
    assert_eq!(last, (62 * 122) * 545 + 544);
    assert_eq!(generator.next(TICK + 1000, || 0), Answer::Wait { until: TICK + 2000 });
}

/// The session has 67 IDs per millisecond, one in each step of about 15 microseconds.
#[test]
fn a_session_that_has_used_up_a_tick_keeps_pace_with_the_clock_until_it_rests() {
    let layout = built_in("si").unwrap();
    let (share, mut generator) = of_slot(layout, 3, 122, TICK - 1000, 0);
    assert_eq!((share.ids_per_step, share.steps), (1, 67));
    let mut made_at = |now| (0..).take_while(|_| matches!(generator.next(now, || 0), Answer::Issue(_))).count();
    // The first burst does not keep pace, even after the session has waited for its first tick. 17 steps are about 254
    // microseconds, and an ID of the current step is not ahead.
    assert_eq!(made_at(TICK - 1), 0);
    assert_eq!((made_at(TICK), made_at(TICK + 1000)), (67, 18));
    assert_eq!((made_at(TICK + 1014), made_at(TICK + 1015)), (0, 1));
    assert_eq!(made_at(TICK + 1999), 1);
    // One tick is not a pause, two ticks are.
    assert_eq!((made_at(TICK + 3000), made_at(TICK + 6000)), (18, 67));
    // If a step lasts 257 microseconds, a session may be one step ahead.
    let layout = built_in("base64id").unwrap();
    let second = 1_700_000_000 * 1_000_000;
    let (share, mut generator) = of_slot(layout, 3, 135, second - 1, 0);
    let mut made_at = |now| (0..).take_while(|_| matches!(generator.next(now, || 0), Answer::Issue(_))).count();
    assert_eq!((made_at(second) as u64, made_at(second + 1_000_000)), (share.size(), 2));
}

#[test]
fn a_session_that_keeps_pace_asks_again_when_it_has_some_way_to_go() {
    let layout = built_in("si").unwrap();
    let (_, mut generator) = of_slot(layout, 3, 122, TICK - 1000, 0);
    (0..68).for_each(|_| _ = generator.next(TICK, || 0));
    (0..18).for_each(|_| _ = issued(generator.next(TICK + 1000, || 0)));
    // A quarter of the way is left then: 4 of 17 steps before the 18th begins, at 14 * 1000 / 67.
    assert_eq!(generator.next(TICK + 1000, || 0), Answer::Ahead { until: TICK + 1209 });
}

/// A session that used the tick before may have run ahead of the clock, so the current step does not show which IDs are unused.
#[test]
fn no_step_of_a_tick_that_has_begun_is_used() {
    let layout = built_in("twitter").unwrap();
    let (_, mut generator) = of_slot(layout, 3, 122, TICK + 100, 0);
    for into_tick in [100, 500, 999] {
        assert_eq!(generator.next(TICK + into_tick, || 0), Answer::Wait { until: TICK + 1000 });
    }
    issued(generator.next(TICK + 1000, || 0));
}

#[test]
fn ticks_of_centuries_have_steps_too() {
    let fields = built_in("twitter").unwrap().fields().to_vec();
    let century = 36_525 * 86_400 * 1_000_000;
    let layout = Layout::new("centuries", 0, century, fields, SequenceRule::Reset).unwrap();
    let (share, mut generator) = of_slot(&layout, 3, 122, 0, 0);
    assert_eq!((share.ids_per_step, share.steps), (1, (1 << 22) / 122));
    let step_at = |id: u64| (id & 0x3f_ffff) / 122;
    assert_eq!(step_at(issued(generator.next(century + century / 2, || 0))), share.steps / 2);
    // The number of steps is odd, so half a step remains.
    assert_eq!(generator.remaining(century + century / 2).of_step, (century as u64).div_ceil(2 * share.steps));
    assert_eq!(step_at(issued(generator.next(2 * century - 1, || 0))), share.steps - 1);
    assert_eq!(generator.next(2 * century - 1, || 0), Answer::Wait { until: 2 * century });
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
        let [one, other] =
            ["one", "other"].map(|name| Layout::new(name, epoch, 1000, fields.clone(), SequenceRule::Reset).unwrap());
        assert_eq!(kind((&one).key()), 0);
        assert_eq!((&one).key(), (&other).key());
    }
}

/// No custom layout can have these names, and sessions of several versions identify their generators by these numbers. New layouts
/// are added after them and counted in LATER.
#[test]
fn the_layouts_of_the_first_release() {
    let first = [
        "twitter",
        "snowflake",
        "si",
        "si_single",
        "uniqueid",
        "uniqueid_v3",
        "base64id",
        "discord",
        "instagram",
        "mastodon",
        "sonyflake",
        "sonyflake_v2",
        "tsid",
        "leaf",
        "baidu",
        "seata",
        "yitter",
        "pgedge",
        "pgedge_1_0",
        "influxdb",
        "weibo",
        "linkedin",
        "cockroach",
        "simpleflake",
    ];
    assert!(first.iter().all(|name| is_always_built_in(name)), "not built in: one of {first:?}");
    assert!(!is_always_built_in("nobody"));
    for (number, name) in (0..).zip(first) {
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
    let short = Layout::new("short", twitter.epoch(), 1000, fields, SequenceRule::Rolling).unwrap();
    assert!(short.same_bits(twitter));
    assert_eq!((&short).key(), twitter.key());
    let end = short.start_of(short.last_tick()) + 1000;
    let (_, mut generator) = of_slot(twitter, 0, 122, end - 3000, 0);
    issued(generator.next(end - 1, || 0));
    generator.adopt(&short);
    issued(generator.next(end - 1, || 0));
    assert_eq!(generator.next(end, || 0), Answer::Exhausted);
    generator.adopt(twitter);
    issued(generator.next(end, || 0));
}

#[test]
fn an_adopted_rule_holds_from_the_next_tick_on() {
    let twitter = built_in("twitter").unwrap();
    let fields = twitter.fields().to_vec();
    let rolling = Layout::new("rolling", twitter.epoch(), 1000, fields, SequenceRule::Rolling).unwrap();
    let (_, mut generator) = of_slot(twitter, 0, 122, TICK - 1000, 0);
    let place_at = |generator: &mut Generator<&Layout>, instant| issued(generator.next(instant, || 0)) & 0x3f_ffff;
    assert_eq!([TICK; 3].map(|instant| place_at(&mut generator, instant)), [0, 1, 2]);
    generator.adopt(&rolling);
    assert_eq!([TICK, TICK + 1000].map(|instant| place_at(&mut generator, instant)), [3, 4]);
    generator.adopt(twitter);
    assert_eq!([TICK + 1000, TICK + 2000].map(|instant| place_at(&mut generator, instant)), [5, 0]);
}
