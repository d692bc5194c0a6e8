//! Sessions raise two things for all sessions of a generation: the anchor, and an announced watermark.

use crate::ledger::host::Server;
use crate::sync::Ordering;

/// Lets IDs lead the clock from an instant on, unless the era has changed. The caller has read flake's time since it knows that
/// instant, and it was lower.
pub fn lead(server: &impl Server, era: u64, of_snos: bool, from: i64) {
    let new = from.saturating_sub(server.monotonic() / 2);
    server.lock(|_| {
        let shared = server.shared();
        if shared.era() == era {
            shared.anchor(era, of_snos).fetch_max(new, Ordering::SeqCst);
        }
    });
    server.point("leads");
}

/// Announces a watermark, unless the era has changed; returns None then. Returns the highest one that was announced.
pub fn announce(server: &impl Server, era: u64, instant: i64) -> Option<i64> {
    server.lock(|_| {
        let shared = server.shared();
        (shared.era() == era).then(|| shared.announced(era).fetch_max(instant, Ordering::SeqCst).max(instant))
    })
}
