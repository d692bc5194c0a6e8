//! Generators that resume: what they count and follow goes on in a new era.

use std::cell::Cell;
use std::convert::Infallible;

use flake_core::resume::{Beginning, Grant, LedgerAccess, Origin, Resumable, Resume};
use flake_core::sno::automatic_share;
use flake_core::{Answer, Generator, Layout, Node, SequenceRule, Share, Slot, SnoGenerator, Start, Window, built_in};

const TICK: i64 = 1_700_000_000_000_000;

/// A ledger in which each request for time begins an era, and where sessions may use all time after one.
#[derive(Default)]
struct EveryRequest(Cell<u64>);

impl LedgerAccess for EveryRequest {
    type Error = Infallible;

    fn begin(&self, _: u64) -> Beginning {
        let window = if self.0.get() == 0 { Window { until: i64::MIN, ..Window::ALL } } else { Window::ALL };
        let start = Start { free_from: TICK + 4_000 * self.0.get() as i64, resumed: None };
        Beginning { start, last_seen: i64::MIN, era: self.0.get(), window }
    }

    fn era(&self) -> u64 {
        self.0.get()
    }

    fn grant(&self, _: i64, _: i64, _: bool) -> Result<Grant, Infallible> {
        self.0.set(self.0.get() + 1);
        Ok(Grant::Window(Window::ALL, self.0.get()))
    }
}

/// Makes this many IDs at an instant.
fn make<G: Resume>(
    own: &mut Resumable<G>,
    ledger: &EveryRequest,
    count: usize,
    mut next: impl FnMut(&mut G) -> (i64, Answer<G::Id>),
) {
    for _ in 0..count {
        assert!(matches!(own.next(ledger, &mut next), Ok(Answer::Issue(_))));
    }
}

fn only<S>(share: impl Fn(Node, Slot) -> S) -> S {
    share(Node::new(0, 1).unwrap(), Slot::new(0, 122).unwrap())
}

#[test]
fn ids_of_earlier_eras_count() {
    let ledger = EveryRequest::default();
    let layout = built_in("twitter").unwrap().clone();
    let share = only(|node, slot| Share::new(&layout, node, slot)).unwrap();
    let mut layouts = Resumable::begin(&ledger, layout.key(), Origin { layout, share, position: 0 });
    let at = |instant| move |generator: &mut Generator| (instant, generator.next(instant, || 0));
    make(&mut layouts, &ledger, 3, at(TICK + 8_000));
    layouts.generator.allow(Window { until: i64::MIN, ..Window::ALL });
    make(&mut layouts, &ledger, 2, at(TICK + 12_000));
    assert_eq!((layouts.issued(), layouts.generator.issued(), layouts.final_progress().era), (5, 2, 2));

    let ledger = EveryRequest::default();
    let mut snos = Resumable::begin(&ledger, 1, only(automatic_share).unwrap());
    let at = |instant| move |generator: &mut SnoGenerator| (instant, generator.next(instant, 0));
    make(&mut snos, &ledger, 3, at(TICK + 8_000));
    snos.generator.allow(Window { until: i64::MIN, ..Window::ALL });
    make(&mut snos, &ledger, 2, at(TICK + 12_000));
    assert_eq!((snos.issued(), snos.generator.issued(), snos.final_progress().era), (5, 2, 2));
}

/// A layout of the same bits that ends earlier ends in the next era, too.
#[test]
fn what_was_adopted_is_followed_in_a_new_era() {
    let ledger = EveryRequest::default();
    let twitter = built_in("twitter").unwrap();
    let mut fields = twitter.fields().to_vec();
    fields[0].bits = 39;
    let short = Layout::new("short", twitter.epoch(), 1_000, fields, SequenceRule::Reset).unwrap();
    let end = short.start_of(short.last_tick()) + 1_000;
    assert!(end > TICK && short.same_bits(twitter));
    let share = only(|node, slot| Share::new(twitter, node, slot)).unwrap();
    let mut own = Resumable::begin(&ledger, twitter.key(), Origin { layout: twitter.clone(), share, position: 0 });
    own.adopt(&short);
    let mut at = |instant: i64| own.next(&ledger, |generator| (instant, generator.next(instant, || 0))).unwrap();
    assert!(matches!(at(TICK + 8_000), Answer::Issue(_)));
    assert_eq!(ledger.era(), 1);
    assert_eq!(at(end), Answer::Exhausted);
}
