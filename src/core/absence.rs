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
        ShareNodeNumber: "a node's number is below the number of nodes",
        ShareNode: "each node has workers of its own",
        ShareNodeRounded: "a node's part of the workers is rounded down",
        ShareNodesFit: "there are no more nodes than workers",
        ShareSlotNumber: "a slot's number is below the number of slots",
        ShareSlot: "each slot has its own part of a step",
        ShareSlotsFit: "there are no more slots than IDs in a tick",
        ShareStep: "each step has a part for every slot",
        ShareStepsRounded: "only whole steps count",
        ShareOrder: "a tick has steps, so that sessions are in order within it",
        ShareBehind: "a session leaves out the steps that have passed",
        ShareRest: "what a session has left out is not made later",
        ShareRolling: "a rolling sequence does not go back where a tick has steps",
        ShareRun: "IDs made in a row end with the slot's part of the step",
        ShareTurn: "IDs made in a row end with the node's workers or sequence numbers",
        ShareCarry: "IDs made in a row end where adjacent bits do",
        LayoutKey: "layouts of the same bits share their generators, whatever their names",
        LayoutOverlap: "layouts whose IDs no bit tells apart are found",
        GeneratorAbove: "a new generator makes nothing in a tick that may have been used",
        GeneratorLastSeen: "a new generator waits for the clock that earlier sessions saw",
        GeneratorTick: "an ID is of the tick in which it is made",
        GeneratorOverflow: "a share that is used up waits for the next tick",
        GeneratorBehind: "a generator waits while the clock is behind its last tick",
        GeneratorWindow: "a generator asks for time before it uses it",
        GeneratorEnd: "no ID is made after the last tick",
        SnoTickTock: "a step back toggles the tick-tock bit",
        SnoSecondStep: "a second step into the same past waits",
        SnoRemembered: "a generator remembers from where the clock stepped back",
        SnoFloor: "a generator does not go back below the floor",
        SnoEnd: "no sno is made after the last unit",
        SnoPartition: "nodes divide the sequence of the caller's partitions",
        SnoAutomatic: "automatic partitions are none that callers can name",
        SnoCaller: "callers cannot name automatic partitions",
        SnoKey: "each of the caller's partitions has its own progress",

        HorizonPublishedFirst: "a bound is published before the ID is made",
        HorizonFence: "a fence between publishing a bound and looking at what was announced",
        HorizonAnnounced: "no ID is made below what was announced",
        HorizonEnded: "transactions that have ended, but not for the snapshot, count",
        HorizonKeptFirst: "a transaction is kept before its bound is cleared",
        HorizonMerged: "transactions that are kept as one have the bound of the oldest",
        HorizonStamp: "one horizon in a snapshot",
        SlotShare: "a session's share is that of its slot",
        SlotOfWorkers: "slots of background workers have shares too",
        NodeConfigured: "only the server's configuration sets the number",
        NodeShadowed: "a session that was told another number does not pin it",
        NodeOfWorkers: "parallel workers do not pin the boot value",
        NodeApplied: "values that are checked and not applied do not count",
        NodeValid: "a background worker pins no boot value where the configuration is not valid",
        StandbyRefused: "standbys make no IDs",
        ClockWait: "a clock that is a little behind is waited for",
        ClockTick: "a reading of the clock is used in its tick only",
        LayoutOfBits: "layouts of the same bits share a generator",
        LayoutAdopted: "another name does not make what a layout may not",
        LayoutAltered: "a layout whose definition was altered is refused",
        LayoutInUse: "a layout in use cannot be dropped",
        LayoutChanged: "sessions notice that a name stands for another layout",
        LayoutOfBatch: "a batch keeps the layout that it began with",
        ShelfKept: "generators that are not at hand are kept",
        LockCanceled: "a wait for a lock can be canceled",
        RoleSuperuser: "only superusers change the mark",
        RoleOwner: "only the owner of the extension makes layouts",
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
