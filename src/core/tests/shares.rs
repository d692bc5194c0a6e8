//! Shares: they never overlap, they are used completely, and some configurations leave none.

use std::collections::HashSet;

use flake_core::{BUILTIN, Error, Generator, Layout, Node, Numbers, Share, Slot, Step, built_in};

fn share(layout: &Layout, node: (u32, u32), slot: (u32, u32)) -> Result<Share, Error> {
    Share::new(layout, Node::new(node.0, node.1).unwrap(), Slot::new(slot.0, slot.1).unwrap())
}

#[test]
fn one_server_gives_a_twitter_session_eight_workers() {
    let share = share(built_in("twitter").unwrap(), (0, 1), (3, 122)).unwrap();
    assert_eq!(share.workers, Numbers { first: 24, count: 8 });
    assert_eq!(share.sequences, Numbers { first: 0, count: 4096 });
    assert_eq!(share.size(), 32768);
}

#[test]
fn with_1024_nodes_the_sessions_of_a_server_divide_one_worker() {
    let share = share(built_in("twitter").unwrap(), (67, 1024), (121, 122)).unwrap();
    assert_eq!(share.workers, Numbers { first: 67, count: 1 });
    assert_eq!(share.sequences, Numbers { first: 121 * 33, count: 33 });
}

#[test]
fn nodes_are_the_coarsest_field() {
    let twitter = built_in("twitter").unwrap();
    let ids = first_ids(twitter, &share(twitter, (9, 32), (0, 4)).unwrap(), 1);
    assert_eq!(twitter.numbers(ids[0])[1].1, 9, "node = datacenter");
    let uniqueid = built_in("uniqueid").unwrap();
    let ids = first_ids(uniqueid, &share(uniqueid, (9, 16), (0, 4)).unwrap(), 64 * 16);
    assert!(ids.iter().all(|&id| id & 15 == 9), "node = cluster");
}

/// The IDs of one tick.
fn first_ids(layout: &Layout, share: &Share, count: usize) -> Vec<u64> {
    let start = layout.epoch() + 1_000 * layout.tick_length();
    let mut generator = Generator::starting_above(layout, share, start, 0).unwrap();
    let next = |_| match generator.next(start + layout.tick_length(), || 0) {
        Step::Issue(id) => id,
        other => panic!("{other:?}"),
    };
    (0..count).map(next).collect()
}

#[test]
fn no_two_slots_of_any_nodes_share_an_id() {
    for layout in BUILTIN {
        for (nodes, slots) in [(1, 1), (1, 3), (1, 122), (2, 37), (3, 10), (7, 1), (16, 5), (32, 9), (33, 2), (100, 4)]
        {
            let mut all = HashSet::new();
            let mut expected = 0;
            for node in 0..nodes {
                for slot in 0..slots {
                    let share = match share(layout, (node, nodes), (slot, slots)) {
                        Ok(share) => share,
                        Err(Error::TooManyNodes { workers, .. }) => {
                            assert!(workers < u64::from(nodes));
                            continue;
                        }
                        Err(Error::EmptyShare { workers, sequences, sharers, .. }) => {
                            assert!(sequences < sharers);
                            assert_eq!(sharers, u64::from(slots).div_ceil(workers));
                            continue;
                        }
                        Err(other) => panic!("{other:?}"),
                    };
                    // All IDs of small shares, the first and the last ones of large shares.
                    let take = share.size().min(300);
                    let ids = first_ids(layout, &share, take as usize);
                    if layout.last_ordered_tick().is_some() {
                        assert!(ids.is_sorted_by(|a, b| a < b), "{} {share:?}", layout.name());
                    }
                    expected += ids.len();
                    all.extend(ids);
                    if share.size() <= 10_000 {
                        let last = *first_ids(layout, &share, share.size() as usize).last().unwrap();
                        let parts = layout.unpack(last).unwrap();
                        assert_eq!(parts.worker, share.workers.first + share.workers.count - 1);
                        assert_eq!(parts.sequence, share.sequences.first + share.sequences.count - 1);
                        expected += usize::from(all.insert(last));
                    }
                }
            }
            assert_eq!(all.len(), expected, "{} with {nodes} nodes of {slots} slots", layout.name());
        }
    }
}

#[test]
fn configurations_that_leave_nothing() {
    let twitter = built_in("twitter").unwrap();
    assert!(matches!(Node::new(4, 4), Err(Error::NodeOutOfRange { id: 4, count: 4 })));
    assert!(matches!(Slot::new(122, 122), Err(Error::SlotOutOfRange { .. })));
    let error = share(twitter, (0, 1025), (0, 1)).unwrap_err();
    assert!(matches!(error, Error::TooManyNodes { workers: 1024, nodes: 1025, .. }));
    // 4097 slots cannot divide the 4,096 sequence numbers of one worker, and even the first slot gets the error.
    let error = share(twitter, (0, 1024), (0, 4097)).unwrap_err();
    assert!(matches!(error, Error::EmptyShare { workers: 1, sequences: 4096, sharers: 4097, .. }));
    assert!(share(twitter, (0, 1024), (4095, 4096)).is_ok());
}
