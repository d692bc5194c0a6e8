//! Records: whatever their bytes are, reserved time only rises by reading them.

use flake_core::ledger::durable::file::newest;
use flake_core::ledger::durable::record::{Record, Reserved};
use flake_core::ledger::durable::record_format::SIZE;
use twox_hash::XxHash3_64;

use super::choices::Choices;

/// Decodes a record with these bytes after the head, with a valid checksum, which random bytes would not have. The last bytes are
/// decisions. Returns whether there is a record.
pub fn page(data: &[u8]) -> bool {
    let _ = (Record::decode(data), newest(data));
    let (bytes, decisions) = data.split_at(data.len().saturating_sub(64));
    let mut page = vec![0; SIZE];
    page[..8].copy_from_slice(b"FLKM\x01\0\x01\0");
    let length = bytes.len().min(SIZE - 16);
    page[16..16 + length].copy_from_slice(&bytes[..length]);
    let checksum = XxHash3_64::oneshot(&page[16..]);
    page[8..16].copy_from_slice(&checksum.to_le_bytes());
    let Ok((mut record, number)) = Record::decode(&page) else { return false };
    let mut choices = Choices(decisions);
    while !choices.is_over() {
        let before = record.clone();
        let until = [choices.instant(&[before.reserved.until[0]]), choices.instant(&[before.reserved.until[1]])];
        let more =
            Reserved { acceptances: before.reserved.acceptances.saturating_add(u64::from(choices.byte() % 3)), until };
        record.merge_reserved(&more);
        assert!(record.reserved.contains(&before.reserved) && record.reserved.contains(&more));
        let greatest = [0, 1].map(|generation| before.reserved.until[generation].max(more.until[generation]));
        let acceptances = before.reserved.acceptances.max(more.acceptances);
        assert_eq!(record.reserved, Reserved { acceptances, until: greatest });
        let is_accepted = more.acceptances > before.reserved.acceptances;
        assert!(if is_accepted { record.published.is_empty() } else { record.published == before.published });
        let kept = Reserved::from_number(record.reserved.number());
        assert_eq!((kept.generation(), kept.number()), (record.reserved.generation(), record.reserved.number()));
        let again = Record::decode(&record.encode(number)).expect("what is written is read");
        assert_eq!(again, (record.clone(), number));
    }
    true
}
