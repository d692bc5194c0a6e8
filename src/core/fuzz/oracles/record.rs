//! The file of 0.9.0: JSON that is accepted counts everything before its end as used.

use flake_core::ledger::record::newest;
use xxhash_rust::xxh3::xxh3_64;

/// The size of each half.
const SIZE: usize = 4096;

/// A file as it is, and JSON up to an empty line, which gets the checksum that nobody guesses.
pub fn record(data: &[u8]) {
    let _ = newest(data);
    let end = data.windows(2).position(|pair| pair == b"\n\n").unwrap_or(data.len());
    let Ok(json) = std::str::from_utf8(&data[..end]) else { return };
    let line = format!("flake 1 {:016x} {json}", xxh3_64(json.as_bytes()));
    let mut file = format!("{line:<width$}\n", width = SIZE - 1).into_bytes();
    if file.len() > SIZE {
        return;
    }
    file.resize(2 * SIZE, b' ');
    let Ok(((marks, part), state)) = newest(&file) else { return };
    let mark = marks.of(part.node).expect("a file is somebody's");
    assert!(state.is_old && mark.used.gaps().is_empty() && part.exit_note.is_none());
    assert!(marks.until() >= mark.used.until());
    let again = marks.encode(Some(&part));
    assert_eq!(flake_core::ledger::marks::Marks::decode(&again), Ok((marks, Some(part))));
}
