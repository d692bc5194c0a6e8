//! Protections that tests take away one at a time, to see that a test notices. Builds with the feature `mutants` take away
//! the one that the environment variable `FLAKE_ABSENT` names; in all others `absent!` is false, and nothing of this remains.

/// Says whether a protection is taken away.
#[macro_export]
macro_rules! absent {
    ($name:ident) => {{
        #[cfg(feature = "mutants")]
        let is_absent = $crate::absence::is_absent($crate::absence::Protection::$name);
        #[cfg(not(feature = "mutants"))]
        let is_absent = false;
        is_absent
    }};
}

#[cfg(feature = "mutants")]
pub use self::mutants::{NAMES, Protection, is_absent, stall};

/// Stops for a moment where that would do the most harm, in builds with the feature `mutants`.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
pub fn stall() {}

#[cfg(feature = "mutants")]
mod mutants {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    macro_rules! protections {
        ($($name:ident: $what:literal,)+) => {
            /// What can be taken away. A protection that nothing asks for does not compile.
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum Protection { $(#[doc = $what] $name,)+ }

            /// The names of all, and what they do.
            pub const NAMES: &[(&str, &str)] = &[$((stringify!($name), $what),)+];
        };
    }

    protections! {
        HorizonPublishedFirst: "a bound is published before the ID is made",
        HorizonFence: "a fence between publishing a bound and looking at what was announced",
        HorizonAnnounced: "no ID is made below what was announced",
        HorizonReading: "a reading of the clock is not used in another transaction",
        HorizonEnded: "transactions that have ended, but not for the snapshot, count",
        HorizonKeptFirst: "a transaction is kept before its bound is cleared",
        HorizonMerged: "transactions that are kept as one have the bound of the oldest",
        HorizonStamp: "one horizon in a snapshot",
        HorizonWorkers: "IDs of parallel workers count for their leader's transaction",
        HorizonPrepared: "prepared transactions count",
        HorizonRebuilt: "transactions that were prepared before a restart count",
        HorizonUnpublished: "there is no horizon while a session cannot publish",
        HorizonDurable: "a horizon is announced only in time that was granted",
        HorizonNoted: "an exit note is not below what was announced",
        HorizonPage: "what is announced is in the page before",
        HorizonBinding: "a horizon in the page binds every node",
        CoverFloor: "an ID from before the start of the server is not covered",
    }

    /// Returns whether the environment names a protection.
    pub fn is_absent(protection: Protection) -> bool {
        static ABSENT: OnceLock<Option<usize>> = OnceLock::new();
        let absent = ABSENT.get_or_init(|| {
            let name = std::env::var("FLAKE_ABSENT").ok()?;
            NAMES.iter().position(|(known, _)| *known == name)
        });
        *absent == Some(protection as usize)
    }

    /// Sleeps up to 3 ms, one time in as many as the environment variable `FLAKE_STALL` says.
    pub fn stall() {
        static EVERY: OnceLock<u32> = OnceLock::new();
        static CHANCE: AtomicU32 = AtomicU32::new(1);
        let every = *EVERY.get_or_init(|| std::env::var("FLAKE_STALL").ok().and_then(|n| n.parse().ok()).unwrap_or(0));
        if every == 0 {
            return;
        }
        // Marsaglia's xorshift, which begins elsewhere in each process.
        let mut chance = CHANCE.load(Ordering::Relaxed);
        if chance == 1 {
            chance = std::process::id().wrapping_mul(2_654_435_761) | 1;
        }
        chance ^= chance << 13;
        chance ^= chance >> 17;
        chance ^= chance << 5;
        CHANCE.store(chance, Ordering::Relaxed);
        if chance.is_multiple_of(every) {
            std::thread::sleep(Duration::from_micros(u64::from(chance >> 8) % 3000));
        }
    }
}
