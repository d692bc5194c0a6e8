//! Generators that resume: their counts and their rules continue in a new era.

use flake_core::ledger::protocol;
use flake_core::{IdSource, Layout, Node, Outcome, Resumable, SequenceRule, Slot, SnoSource, built_in};

mod alone;
use alone::{Alone, NOON, SECOND};

/// Begins the generator of the only session.
fn begin<S: IdSource>(alone: &mut Alone, source: S) -> Resumable<S> {
    let share = source.share(Node::new(0, 1).unwrap(), Slot::new(0, 122).unwrap()).unwrap();
    Resumable::begin(alone, source, &share, 0).unwrap()
}

/// Makes this many IDs at an instant.
fn make<S: IdSource>(own: &mut Resumable<S>, alone: &mut Alone, (now, count): (i64, usize), argument: S::Argument) {
    alone.at(now);
    for _ in 0..count {
        let outcome = own.next(alone, |_| (now, Ok(())), argument);
        assert!(matches!(outcome, Ok(Outcome::Made(_))));
    }
}

#[test]
fn ids_of_earlier_eras_are_counted() {
    let mut alone = Alone::new();
    let mut layouts = begin(&mut alone, built_in("twitter").unwrap());
    let mut snos = begin(&mut alone, SnoSource { partition: None });
    make(&mut layouts, &mut alone, (NOON + SECOND, 3), || 0);
    make(&mut snos, &mut alone, (NOON + SECOND, 3), 0);
    let era = layouts.final_progress().era;
    protocol::start_above(&mut alone, NOON + 10 * SECOND).unwrap();
    make(&mut layouts, &mut alone, (NOON + 20 * SECOND, 2), || 0);
    make(&mut snos, &mut alone, (NOON + 20 * SECOND, 2), 0);
    assert_eq!((layouts.issued(), layouts.generator.issued()), (5, 2));
    assert_eq!((snos.issued(), snos.generator.issued()), (5, 2));
    assert!(
        layouts.final_progress().era > era && snos.final_progress().era > era,
        "both generators must be in a new era"
    );
}

/// A layout with the same bits that ends earlier also ends in the next era.
#[test]
fn an_adopted_rule_is_followed_in_a_new_era() {
    let mut alone = Alone::new();
    let twitter = built_in("twitter").unwrap();
    let mut fields = twitter.fields().to_vec();
    fields[0].bits = 39;
    let short = Layout::new("short", twitter.epoch(), 1_000, fields, SequenceRule::Reset).unwrap();
    let end = short.start_of(short.last_tick()) + 1_000;
    assert!(
        end > NOON && short.same_bits(twitter),
        "the short layout must have the bits of twitter, and end after noon"
    );
    let mut own = begin(&mut alone, twitter);
    own.generator.adopt(&short);
    make(&mut own, &mut alone, (NOON + SECOND, 1), || 0);
    protocol::start_above(&mut alone, NOON + 2 * SECOND).unwrap();
    make(&mut own, &mut alone, (NOON + 5 * SECOND, 1), || 0);
    alone.at(end);
    assert_eq!(own.next(&mut alone, |_| (end, Ok(())), || 0), Ok(Outcome::Exhausted));
}
