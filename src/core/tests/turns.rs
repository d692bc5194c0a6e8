//! Turns: a timeline never has the turn of one of the two before it, whatever is left of its history, or the turn is unknown.

use flake_core::turn::parents;
use flake_core::{TURNS, Turn, Turns};

/// How many promotions the longest chains have.
const LONG: u32 = 9;

/// Calls `act` with each chain of timelines in which up to three numbers are left out before each: of the long ones, 262,144.
fn each_chain(promotions: u32, mut act: impl FnMut(&[u32])) {
    for choice in 0..1u32 << (2 * promotions) {
        let mut chain = vec![1];
        for place in 0..promotions as usize {
            chain.push(chain[place] + 1 + (choice >> (2 * place) & 3));
        }
        act(&chain);
    }
}

/// Returns what each timeline of a chain has recorded, if its history was whole.
fn recorded(chain: &[u32]) -> Vec<Turns> {
    let of = |place: usize| Turns::of(chain[place], Some(&chain[..place]), &[]).unwrap();
    (0..chain.len()).map(of).collect()
}

fn turn(turns: Turns) -> u32 {
    turns.last.unwrap().turn
}

#[test]
fn a_timeline_has_no_turn_of_the_two_before() {
    each_chain(LONG, |chain| {
        let all = recorded(chain);
        for (place, turns) in all.iter().enumerate() {
            assert_eq!(turns.last.unwrap().timeline, chain[place]);
            assert_eq!(turns.before, place.checked_sub(1).and_then(|before| all[before].last), "{chain:?}");
            assert!(turn(*turns) < TURNS);
            assert!((1..=2).all(|back| place < back || turn(all[place - back]) != turn(*turns)), "{chain:?}");
        }
    });
}

/// The file and the page are from any time: one of them is behind.
#[test]
fn a_history_that_is_cut_anywhere_gives_a_turn_that_is_free_or_none() {
    let (mut same, mut other, mut unknown) = (0_u64, 0_u64, 0_u64);
    each_chain(LONG, |chain| {
        let all = recorded(chain);
        let last = chain.len() - 1;
        let parents = &chain[..last];
        for (cut, file, page) in [
            (0, 9, 9),
            (3, 8, 9),
            (5, 5, 7),
            (6, 9, 4),
            (7, 8, 7),
            (8, 9, 9),
            (8, 8, 3),
            (8, 7, 6),
            (9, 8, 8),
            (4, 3, 2),
        ] {
            // 9 stands for no record.
            let known: Vec<_> = [file, page].into_iter().filter(|&place| place < 9).map(|place| all[place]).collect();
            let found = Turns::of(chain[last], Some(&parents[cut..]), &known);
            let is_recorded = known.iter().any(|known| parents[cut..].contains(&known.last.unwrap().timeline));
            assert_eq!(found.is_some(), cut == 0 || is_recorded, "{chain:?} from {cut} with {known:?}");
            match found {
                // A record from before the beginning of the history counts as one before.
                Some(found) if known.iter().any(|known| !parents[cut..].contains(&known.last.unwrap().timeline)) => {
                    assert!(
                        (1..=2).all(|back| turn(all[last - back]) != turn(found)),
                        "{chain:?} from {cut} with {known:?}"
                    );
                    other += 1;
                }
                Some(found) => {
                    assert_eq!(found, all[last], "{chain:?} from {cut} with {known:?}");
                    same += 1;
                }
                None => unknown += 1,
            }
            // Once it is recorded, nothing else matters.
            let later = [all[last], known.first().copied().unwrap_or_default()];
            assert_eq!(Turns::of(chain[last], None, &later), Some(all[last]));
            let accepted = Turns::accepted(chain[last], &known);
            assert!(known.iter().all(|known| turn(*known) != turn(accepted)), "{known:?} {accepted:?}");
        }
    });
    assert!(same > 1_000_000 && other > 200_000 && unknown > 200_000, "{same} {other} {unknown}");
}

/// A superuser has accepted any turn for a timeline, and one of the file and the page is behind.
#[test]
fn the_chain_goes_on_from_the_newest_record() {
    let old = recorded(&[1, 2, 3])[2];
    for turn_of_5 in (0..TURNS).filter(|&other| other != turn(old)) {
        let newest = Turns { before: old.last, last: Some(Turn { timeline: 5, turn: turn_of_5 }) };
        for recorded in [[old, newest], [newest, old]] {
            let found = Turns::of(6, Some(&[3, 5]), &recorded).unwrap();
            assert_eq!(found.before, newest.last);
            assert!(![turn(old), turn_of_5].contains(&turn(found)), "{found:?}");
        }
    }
}

/// After pg_upgrade, timelines begin with 1 again, while servers of the old cluster may run.
#[test]
fn a_cluster_that_begins_again_takes_another_turn() {
    each_chain(3, |chain| {
        let old = recorded(chain);
        for upgraded in &old[1..] {
            let first = Turns::of(1, Some(&[]), &[*upgraded]).unwrap();
            assert_eq!(first.before, upgraded.last);
            for turns in [upgraded.last, upgraded.before].into_iter().flatten() {
                assert_ne!(turn(first), turns.turn, "{chain:?}");
            }
            let second = Turns::of(2, Some(&[1]), &[first]).unwrap();
            assert!(![turn(first), turn(*upgraded)].contains(&turn(second)), "{chain:?}");
        }
        // On the first timeline, the cluster keeps its turn.
        assert_eq!(Turns::of(1, Some(&[]), &[old[0]]), Some(old[0]));
    });
}

/// The file is from a trial restore, whose timeline is not in the history.
#[test]
fn a_timeline_that_is_not_in_the_history_counts_as_one_before() {
    each_chain(5, |chain| {
        let all = recorded(chain);
        for branch in chain[4] + 1..chain[4] + 9 {
            let trial = Turns::of(branch, Some(&chain[..5]), &[]).unwrap();
            for number in branch + 1..branch + 5 {
                for cut in [0, 4] {
                    let found = Turns::of(number, Some(&chain[cut..5]), &[trial]).unwrap();
                    assert!(![turn(trial), turn(all[4])].contains(&turn(found)), "{chain:?} {trial:?} {found:?}");
                }
            }
        }
    });
}

#[test]
fn the_history_is_read_as_bytes() {
    let lines =
        b"1\t0/3000000\tno recovery target specified\n\n# a comment\n4\t0/5000000\tat restore point \"L\xf6schung\"\n";
    assert_eq!(parents(lines, 5), Some(vec![1, 4]));
    assert_eq!(parents(b"5\t0/5000000\n", 6), Some(vec![5]));
    let commented = b"# 2\t0/0\tnobody\n \t# 5\n  1 0/1 a\n\t\n4\t0/2\r\n";
    assert_eq!(parents(commented, 9), Some(vec![1, 4]));
    for text in [
        &b""[..],
        b"x",
        b"1",
        b"1\t\n1\t\n",
        b"4\t0/1\n1\t0/1\n",
        b"7\t0/5000000\n",
        b"0\t0/1\n",
        b"-1\t0/1\n",
        b"99999999999\t0/1\n",
    ] {
        assert_eq!(parents(text, 6), None, "{text:?}");
    }
}
