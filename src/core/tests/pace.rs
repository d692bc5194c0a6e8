//! Pace: how far sessions are ahead of the clock within a tick, and what they leave to others in long ticks.

use flake_core::{Answer, Layout};

mod tick;
use tick::{Server, TICK, layout, si, twitter};

/// 17 steps of `si` are about 256 microseconds, and 33 steps are 512; an ID of the current step is not ahead.
#[test]
fn a_session_is_not_far_ahead_of_the_clock() {
    let server = Server::of(si(), 1, TICK);
    let mut bulk = server.session(server.tick % 2);
    let last_step = |numbers: &[u64]| numbers.last().map(|number| number / 130);
    let (numbers, answer) = server.all(&mut bulk, 0);
    // A quarter of the way is left then: 4 of 16 steps before the 17th begins, at 5 * 1000 / 63.
    assert_eq!((last_step(&numbers), answer), (Some(16), Answer::Ahead { until: TICK + 80 }));
    // A session that has made few IDs may be twice as far ahead; then it keeps pace too.
    let mut few = server.session(0);
    let (numbers, answer) = server.all(&mut few, 0);
    assert_eq!((numbers.len(), last_step(&numbers)), (8, Some(17)));
    assert_eq!(answer, Answer::Ahead { until: TICK + 80 });
    while server.number(&mut server.session(0), 0).is_ok() {}
    let furthest = server.cursors.taken.borrow().iter().map(|(_, cursor)| (cursor - 1) % (63 * 65) / 65).max();
    assert_eq!(furthest, Some(32), "sessions with few IDs");
    assert_eq!(server.number(&mut server.session(0), 0), Err(Answer::Ahead { until: TICK + 143 }));
    // After 300 microseconds, the session may be as far ahead again.
    let (numbers, _) = server.all(&mut bulk, 300);
    assert_eq!(last_step(&numbers), Some(300 * 63 / 1000 + 16));
}

/// Steps of more than a millisecond are not paced. A session would wait for each ID.
#[test]
fn long_steps_have_no_pace() {
    for (step, at_once) in [(1000, false), (1001, true)] {
        let made = layout(256 * step, [40, 2, 6]);
        let server = Server::of(&made, 1, 7 * 256 * step);
        assert_eq!((server.lanes.count, server.lanes.steps, server.lanes.ids_per_step), (1, 256, 1));
        let (numbers, answer) = server.all(&mut server.session(0), 0);
        let until = server.start + made.tick_length();
        assert_eq!(answer == Answer::Wait { until }, at_once, "{answer:?}");
        // At least a step ahead, and more with few IDs.
        assert_eq!(numbers.len(), if at_once { 256 } else { 2 });
    }
}

#[test]
fn ticks_of_more_than_a_second_leave_something_to_others() {
    for (tick, bits, most) in [
        (1_000_000, [30, 8, 6], 1 << 14),
        (1_000_001, [30, 8, 6], 1 << 11),
        (60_000_000, [30, 8, 6], 1 << 11),
        (60_000_000, [30, 1, 3], 2),
        (60_000_000, [30, 0, 2], 1),
    ] {
        let made = layout(tick, bits);
        let server = Server::of(&made, 1, 100 * tick);
        let mut session = server.session(0);
        let (numbers, end, into_tick) = server.walk(&mut session);
        assert_eq!(end, Answer::Wait { until: server.start + tick });
        assert_eq!(numbers.len() as u64, most);
        assert_eq!(server.number(&mut server.session(0), into_tick).is_ok(), tick > 1_000_000);
        // There is as much in the next tick.
        assert!(matches!(session.next(server.start + tick, &server.cursors, || 0), Answer::Issue(_)));
    }
}

#[test]
fn ticks_of_centuries_have_steps_too() {
    let century = 36_525 * 86_400 * 1_000_000;
    let layout = Layout::new("centuries", 0, century, twitter().fields().to_vec()).unwrap();
    let server = Server::of(&layout, 1, century);
    assert_eq!((server.lanes.count, server.lanes.steps, server.lanes.ids_per_step), (1, 1 << 22, 1));
    let mut session = server.session(0);
    assert_eq!(server.number(&mut session, century / 2), Ok(1 << 21));
    assert_eq!(session.remaining(century + century / 2).of_step, (century as u64).div_ceil(1 << 22));
    assert_eq!(server.number(&mut session, century - 1), Ok((1 << 22) - 1));
    assert_eq!(server.number(&mut session, century - 1), Err(Answer::Wait { until: 2 * century }));
}
