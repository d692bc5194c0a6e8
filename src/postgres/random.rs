//! Random numbers.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rand::distr::{Distribution, StandardUniform};

use super::memory;

/// Returns a random number. For the first one, the process asks libc for memory, and would end if that was refused. PostgreSQL's first
/// process must not call this, because all others would have the same numbers.
#[inline]
pub fn random<T>() -> T
where
    StandardUniform: Distribution<T>,
{
    static IS_READY: AtomicBool = AtomicBool::new(false);
    if !IS_READY.load(Relaxed) {
        memory::ensure_memory_left();
        IS_READY.store(true, Relaxed);
    }
    rand::random()
}
