//! Records of the mark's file: one that is accepted is written as it was read, and what a server makes of it counts all its time
//! as used.

use flake_core::opening::Opening;
use flake_core::record::{ExitNote, Owner, Record, SIZE};
use flake_core::timeline::{Stretch, Timeline};
use flake_core::{Ledger, Node, marks::Marks};
use xxhash_rust::xxh3::xxh3_64;

use super::choices::Choices;

/// A file as it is, and JSON up to an empty line, which gets the checksum that nobody guesses; decisions follow.
pub fn record(data: &[u8]) {
    let _ = Record::newest(data);
    let end = data.windows(2).position(|pair| pair == b"\n\n").unwrap_or(data.len());
    let Ok(json) = std::str::from_utf8(&data[..end]) else { return };
    let line = format!("flake 1 {:016x} {json}", xxh3_64(json.as_bytes()));
    let Some((0, record)) = Record::newest(format!("{line:<width$}\n", width = SIZE - 1).as_bytes()) else { return };
    let mut choices = Choices(&data[end..]);
    let timeline = record.timeline();
    let boot_id = "0123abcd-0123-0123-0123-0123456789ab".to_owned();
    let exit_note = choices.flag().then(|| ExitNote { boot_id: boot_id.clone(), free_from: choices.number() as i64 });
    let next = Record::new(record.number.saturating_add(1), record.owner, &timeline, exit_note);
    let file = next.encode();
    assert_eq!(file.len(), SIZE);
    assert_eq!(Record::newest(&file), Some((0, next.clone())));
    let owner = record.owner;
    let opened = opening(owner, &mut choices).ledger(Some(next), Some(&boot_id)).0;
    goes_on(opened, &mut choices);
}

fn opening(owner: Owner, choices: &mut Choices<'_>) -> Opening {
    let own = Node::new(owner.node.0, owner.node.1).ok().filter(|_| !choices.flag());
    let node = own.unwrap_or(Node::new(0, 1).unwrap());
    Opening {
        now: choices.instant(&[0]),
        started_at: choices.flag().then(|| choices.instant(&[0])),
        node,
        wal_timeline: choices.pick(&[0, owner.wal_timeline, 1]),
        new_memory: owner.memory.wrapping_add(1),
        known: Marks::new(choices.flag().then(|| choices.instant(&[0]))).of(node),
    }
}

/// Whatever the clock says, stretches stay in order, and used time stays used.
pub fn goes_on(mut ledger: Ledger, choices: &mut Choices<'_>) {
    for _ in 0..16 {
        let before = *ledger.timeline();
        let ends: Vec<i64> = before.stretches().iter().flat_map(|stretch| [stretch.from, stretch.until]).collect();
        let now = choices.instant(&ends);
        let tick_end = now.saturating_add(1 + (choices.number() >> (1 + choices.byte() % 63)) as i64);
        match choices.byte() % 4 {
            0 | 1 => {
                if let Ok(extended) = ledger.extended(now, tick_end) {
                    ledger = extended;
                }
            }
            2 => {
                if let Ok((covered, _)) = ledger.covered(now, tick_end) {
                    ledger = covered;
                }
            }
            _ => ledger = ledger.accepted(now).0,
        }
        let after = ledger.timeline();
        assert!(Timeline::of(after.stretches(), after.open_index()).is_some());
        for used in before.stretches().iter().filter(|used| used.from < used.until) {
            let is_used = |stretch: &&Stretch| stretch.from <= used.from && used.until <= stretch.until;
            assert!(
                after.stretches().iter().any(|stretch| is_used(&stretch)),
                "{used:?} of {before:?} is not in {after:?}"
            );
        }
        if choices.is_over() {
            return;
        }
    }
}
