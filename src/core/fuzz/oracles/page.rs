//! Marks: whatever their bytes are, used time only grows by reading them.

use flake_core::ledger::block::{FilePart, SIZE};
use flake_core::ledger::marks::{Author, Mark, Marks};
use flake_core::ledger::record::newest;
use flake_core::ledger::used::Used;
use twox_hash::XxHash3_64;

use super::choices::Choices;

/// Decodes marks with these bytes after the head, with a valid checksum, which random bytes would not have. The last bytes are
/// decisions.
pub fn page(data: &[u8]) {
    let _ = (Marks::decode(data), newest(data));
    let (bytes, decisions) = data.split_at(data.len().saturating_sub(64));
    let mut page = vec![0; SIZE];
    page[..8].copy_from_slice(b"FLKM\x01\0\x01\0");
    let length = bytes.len().min(SIZE - 16);
    page[16..16 + length].copy_from_slice(&bytes[..length]);
    let checksum = XxHash3_64::oneshot(&page[16..]);
    page[8..16].copy_from_slice(&checksum.to_le_bytes());
    let Ok((mut marks, file)) = Marks::decode(&page) else { return };
    let mut choices = Choices(decisions);
    while !choices.is_over() {
        let count = choices.pick(&[1, 2, 32, 1024, u32::MAX]);
        let part = (u32::from(choices.byte()) % count, count);
        let me = Author { part, incarnation: u32::from(choices.byte()), start: u32::from(choices.byte()) };
        let known = marks.of(part).map_or(Used::NONE, |mark| mark.used);
        let (instant, until) = (choices.instant(&[0]), marks.until());
        let another = Author { incarnation: me.incarnation.wrapping_add(1), ..me };
        let counting = marks.used_for(another, None);
        let own = marks.of(part).filter(|mark| mark.by.incarnation != another.incarnation);
        assert!(own.is_none_or(|own| counting.contains(&own.used)));
        let used = known.united(&Used::before(instant));
        marks.set(Mark { by: me, used });
        assert!(marks.of(part).is_some_and(|mark| mark.used.contains(&known)) && marks.until() >= until.max(instant));
        let of_file: Option<FilePart> = file.clone().filter(|_| choices.flag());
        let (again, _) = Marks::decode(&marks.encode(of_file.as_ref())).expect("what is written is read");
        assert!(again.listed().iter().zip(marks.listed()).all(|(again, mark)| again.used.contains(&mark.used)));
        assert_eq!(again.published, marks.published);
        marks = again;
    }
}
