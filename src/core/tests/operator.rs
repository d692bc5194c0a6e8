//! The calls of superusers, and the limit of a lead.

mod alone;
use alone::making::server;

/// There are two ways out: the setting, and an acceptance.
#[test]
fn a_lead_beyond_the_limit_is_an_error_with_two_ways_out() {
    for way_out in ["max-lead 4h, make", "accept 3, make 3, reserved 6, acceptances 1"] {
        server().play("session, at 3h, make, at 0, make 3h, pass 3, too-far 2h").play(way_out);
    }
}

/// All that time is reserved already.
#[test]
fn a_new_session_leads_no_further_than_the_limit() {
    server().play("at 1h, make, at -1, session, too-far 1h");
}

/// Both generations are ahead then, and only the setting helps.
#[test]
fn a_clock_is_not_accepted_into_a_generation_that_is_far_ahead() {
    server().play(
        "session, at 3h, make, at 0, accept, at 3h, make, at 0, note, both-lead 10803, unchanged, max-lead 4h, make",
    );
}

/// An operator calls the function in each database, and again if the lead is not over. It helps once the other generation leads less.
#[test]
fn a_clock_is_not_accepted_into_a_generation_that_leads_as_far() {
    server().play(
        "session, at 0.5h, make, at 0, accept, at 0.25h, make, at 0, note, accept-not 0, unchanged, make 0.25h,
         pass 0.5h, at 1h, make, at 1803, accept, make 1803",
    );
}

#[test]
fn a_clock_that_is_not_led_is_not_accepted() {
    server().play("make, note, accept-not 0, unchanged");
}

/// Less than three seconds above it: a lead of layouts or of snos, a watermark, or the floor of a start.
#[test]
fn a_clock_is_accepted_whatever_is_above_it() {
    for above in ["lead 1", "lead-snos 1", "announce 1", "restart"] {
        server().play("make").play(above).play("accept 0");
    }
}

/// Accepted again, IDs continue above all of the first generation.
#[test]
fn an_acceptance_is_in_the_file_then_in_the_page() {
    server().play(
        "session, at 0.5h, make, at 0, acceptances 0, note, accept, acceptances 1, new-era, make 0,
         at 1h, make, at 0, accept, make 1803",
    );
}

/// If the write fails halfway, the file may have the acceptance. It counts once a write has succeeded, and until then no time is
/// granted, although some is reserved, and a generator that begins asks for time: after a crash, rows could come below a watermark.
#[test]
fn an_acceptance_that_failed_closes_the_time() {
    let alone = server().play("make, at -60, disk fails, accept-fails, at 0, grant-fails, closed, disk works, grant");
    assert!(!alone.is_in_doubt(), "the write has replaced what was in doubt");
    alone.play("flush-fails, grant-over, generation 1");
}

/// It says from when on IDs are made, so an acceptance that may be in the file comes into force before.
#[test]
fn start_above_returns_nothing_that_a_failed_acceptance_takes_back() {
    server().play("make, at -60, make 0, above -1h -60, flush-fails, above -1h -60 old, make -60");
}

/// IDs of the generation led the clock when it was in force before, and the steady clock has passed an hour since.
#[test]
fn an_accepted_generation_leads_no_more_than_it_must() {
    let mut alone = server().play(
        "max-lead 10h, session, pass 60, make, back 30, make, led, accept, right,
         pass 2h, make, back 1.5h, make, led, accept, right",
    );
    assert_eq!(alone.make(), Ok(alone.now.get()));
}

#[test]
fn start_above_raises_both_generations_and_no_acceptance_takes_it_back() {
    server().play(
        "make, note, above 0.5h, new-era, in-file 0.5h/0.5h, in-page 0.5h/0.5h, make 0.5h,
         at 1h, make, at 0, accept, make 0.5h, note, above 0 0.5h old, same-era",
    );
}
