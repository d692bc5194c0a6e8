//! Instants: microseconds since 1970-01-01T00:00:00Z. Two of them are signs, and no clock reads them.

/// Before every instant. Time that is used until then is none; a watermark that was announced until then is none.
pub const MIN_INSTANT: i64 = i64::MIN;
/// After every instant: the end of time that has no end, and when something happens that never does.
pub const NEVER: i64 = i64::MAX;
