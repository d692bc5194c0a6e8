//! Generators that resume: what they count and follow goes on in a new era.

use flake_core::ledger::protocol;
use flake_core::sno::automatic_share;
use flake_core::{
    Answer, Generator, Layout, Node, Origin, Resumable, Resume, SequenceRule, Share, Slot, SnoGenerator, built_in,
};

mod alone;
use alone::{Alone, NOON, SECOND};

/// Makes this many IDs at an instant.
fn make<G: Resume>(
    own: &mut Resumable<G>,
    alone: &mut Alone,
    (now, count): (i64, usize),
    mut next: impl FnMut(&mut G, i64) -> Answer<G::Id>,
) {
    alone.at(now);
    for _ in 0..count {
        let answer = own.next(alone, |_| (now, Ok(())), &mut next);
        assert!(matches!(answer, Ok(Answer::Issue(_))));
    }
}

fn only<S>(share: impl Fn(Node, Slot) -> S) -> S {
    share(Node::new(0, 1).unwrap(), Slot::new(0, 122).unwrap())
}

#[test]
fn ids_of_earlier_eras_count() {
    let mut alone = Alone::new();
    let layout = built_in("twitter").unwrap().clone();
    let share = only(|node, slot| Share::new(&layout, node, slot)).unwrap();
    let mut layouts = Resumable::begin(&mut alone, layout.key(), Origin { layout, share, position: 0 }).unwrap();
    let mut snos = Resumable::begin(&mut alone, 1, only(automatic_share).unwrap()).unwrap();
    let of_layout = |generator: &mut Generator, now| generator.next(now, || 0);
    let of_sno = |generator: &mut SnoGenerator, now| generator.next(now, 0);
    make(&mut layouts, &mut alone, (NOON + SECOND, 3), of_layout);
    make(&mut snos, &mut alone, (NOON + SECOND, 3), of_sno);
    let era = layouts.final_progress().era;
    protocol::start_above(&mut alone, NOON + 10 * SECOND).unwrap();
    make(&mut layouts, &mut alone, (NOON + 20 * SECOND, 2), of_layout);
    make(&mut snos, &mut alone, (NOON + 20 * SECOND, 2), of_sno);
    assert_eq!((layouts.issued(), layouts.generator.issued()), (5, 2));
    assert_eq!((snos.issued(), snos.generator.issued()), (5, 2));
    assert!(layouts.final_progress().era > era && snos.final_progress().era > era);
}

/// A layout of the same bits that ends earlier ends in the next era, too.
#[test]
fn what_was_adopted_is_followed_in_a_new_era() {
    let mut alone = Alone::new();
    let twitter = built_in("twitter").unwrap();
    let mut fields = twitter.fields().to_vec();
    fields[0].bits = 39;
    let short = Layout::new("short", twitter.epoch(), 1_000, fields, SequenceRule::Reset).unwrap();
    let end = short.start_of(short.last_tick()) + 1_000;
    assert!(end > NOON && short.same_bits(twitter));
    let share = only(|node, slot| Share::new(twitter, node, slot)).unwrap();
    let origin = Origin { layout: twitter.clone(), share, position: 0 };
    let mut own = Resumable::begin(&mut alone, twitter.key(), origin).unwrap();
    own.adopt(&short);
    make(&mut own, &mut alone, (NOON + SECOND, 1), |generator, now| generator.next(now, || 0));
    protocol::start_above(&mut alone, NOON + 2 * SECOND).unwrap();
    make(&mut own, &mut alone, (NOON + 5 * SECOND, 1), |generator, now| generator.next(now, || 0));
    alone.at(end);
    assert_eq!(
        own.next(&mut alone, |_| (end, Ok(())), |generator, now| generator.next(now, || 0)),
        Ok(Answer::Exhausted)
    );
}
