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
        ResumeEra: "a generator of an earlier era is not granted time of this one",
        ResumeAnew: "a generator begins anew in a new era",
        SlotStored: "a session continues where its slot's last owner stopped",
        SlotEra: "progress of another era is not resumed",
        SlotEraOver: "progress of an era that is over is not stored",
        SlotFull: "progress for which there is no room raises the slot's floor",
        SlotAbandoned: "a session that cannot store its progress gives up the time that was granted",
        SlotBelowFloor: "progress below the floor is not resumed",
        SlotSteppedBack: "a generator that starts anew starts above its predecessor",
        LedgerPresent: "a server that knows nothing starts above the present",
        LedgerReopened: "a restart starts above the time that was granted",
        LedgerRaised: "a ledger is raised above what it does not know",
        LedgerRaisedEra: "raising the ledger begins a new era",
        LedgerPassed: "generators start anew above time that was skipped",
        LedgerSkippedTick: "a tick that reaches into skipped time is closed",
        LedgerCoveredSkip: "so is one in the past",
        LedgerCovered: "time that a sno goes back to is recorded as used",
        TimelineSkipped: "time that a clock ahead has used is skipped",
        TimelineMerged: "where there is no room for a stretch, the time between two counts as used",
        TimelineAccepted: "accepting the clock opens unused time only",
        OpeningNode: "another node's file does not count",
        OpeningCount: "the file of a node under another number of nodes counts",
        OpeningPromoted: "the file of another primary does not count as this server's",
        OpeningOfStandby: "nor does the file of a standby, which may be promoted more than once",
        OpeningRenumbered: "the file of another number of nodes is not this server's memory",
        OpeningOverlap: "a server that takes over a number leaves the old one two seconds",
        OpeningBoot: "an exit note counts only while the same operating system runs",
        OpeningNote: "an exit note does not count once the ledger was raised",
        OpeningPage: "what another memory wrote to the page raises the ledger",
        OpeningLost: "so does what the server wrote itself and its file has lost",
        MarkCount: "a mark under another number of nodes counts for every node",
        MarkUnlisted: "a node that is not listed is above the mark of all such nodes",
        MarkGoesOn: "it goes on counting when the node is listed",
        MarkLowered: "marks are never lowered",
        MarkFull: "a mark for which there is no room counts for all nodes that are not listed",
        RecordWhole: "a damaged record does not count",
        RecordNewest: "the newer record counts",
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
        HorizonReading: "a reading of the clock is not used in another transaction",
        HorizonEnded: "transactions that have ended, but not for the snapshot, count",
        HorizonKeptFirst: "a transaction is kept before its bound is cleared",
        HorizonMerged: "transactions that are kept as one have the bound of the oldest",
        HorizonStamp: "one horizon in a snapshot",
        HorizonPrepared: "prepared transactions count",
        HorizonRebuilt: "transactions that were prepared before a restart count",
        HorizonUnpublished: "there is no horizon while a session cannot publish",
        HorizonDurable: "a horizon is announced only in time that was granted",
        HorizonNoted: "an exit note is not below what was announced",
        HorizonPage: "what is announced is in the page before",
        HorizonBinding: "a horizon in the page binds every node",
        HorizonPromoted: "time granted on a standby is not used below a horizon of the old primary",
        HorizonGranted: "nor in time that was granted to them before, below what another server has announced",
        CoverFloor: "an ID from before the start of the server is not covered",
        SlotShare: "a session's share is that of its slot",
        SlotOfWorkers: "slots of background workers have shares too",
        SlotProgress: "a session stores its progress when it exits",
        SlotGivenUp: "a session that exits in the middle of an ID gives up what was granted",
        ExitNoteOfLast: "only the last session to exit writes a note",
        ExitNoteWithdrawn: "a session that begins withdraws the note",
        MemoryOfServer: "a session without the control block makes no IDs",
        MemoryPresent: "a session without memory for its slot begins above the present",
        MemoryFree: "a session without memory for its slot begins above what all that exited have used",
        MemoryFloor: "a session without memory for its slot leaves a floor for all slots",
        ForeignShareRule: "a library that shares by another rule makes no IDs",
        ForeignVersion: "a control block of another version is not read",
        ForeignFloor: "sessions of another version leave a floor for all",
        ForeignExitNote: "no note after sessions of another version",
        ForeignMark: "sessions of another version raise the mark above the known one",
        MarkFile: "time is in the file before it is used",
        MarkFirst: "time that could not be written is not used",
        MarkHalves: "a record does not overwrite the last one",
        MarkFlushed: "records of granted time are flushed",
        MarkDamaged: "a damaged file is an error",
        MarkWhole: "a file that was cut off is an error",
        MarkOwner: "the file of another node is not this one's memory",
        MarkTimeline: "a server that continues another's WAL under its number waits",
        PageRaised: "time is in the page before it is used",
        PageFlushed: "the record of the page is flushed",
        PageFlushedByOthers: "what another session wrote into the page is flushed",
        PageOfResumed: "a generator that resumes has its tick in the page",
        PageOfNew: "a new generator has its tick in the page",
        PageCompared: "the page of each database is compared",
        PagePromoted: "pages are compared again after a promotion",
        PageMemory: "each memory has a number of its own",
        PageCreated: "CREATE EXTENSION records the mark",
        PageLastValue: "the sequence's last value counts where there is no page",
        PageApart: "the mark lies apart from what setval sets",
        PageSane: "a last value far ahead is ignored",
        PageDamaged: "a page of something else is an error",
        PageOfOthers: "a page that is created again keeps the marks of other nodes",
        PageOfTransaction: "what is in a new page is not remembered",
        NodeConfigured: "only the server's configuration sets the number",
        NodeShadowed: "a session that was told another number does not pin it",
        NodeOfWorkers: "parallel workers do not pin the boot value",
        NodeApplied: "values that are checked and not applied do not count",
        NodeValid: "a background worker pins no boot value where the configuration is not valid",
        NodeAsked: "a session that cannot know asks a background worker",
        NodePinned: "a reload does not change the number",
        StandbyRefused: "standbys make no IDs",
        ClockWait: "a clock that is a little behind is waited for",
        ClockRestart: "a restart is waited for, whatever the patience",
        ClockNoticed: "steps of the clock are counted and logged",
        ClockTick: "a reading of the clock is used in its tick only",
        StartWaits: "flake_start_above waits for what was granted",
        StartGranted: "flake_start_above knows what was granted, also the second time",
        StartTick: "flake_start_above waits for the longest tick",
        StartForce: "flake_start_above goes far ahead by force only",
        StartPage: "what flake_start_above gives up is in the page",
        AcceptWarned: "flake_accept_clock warns of horizons",
        AcceptBound: "it also warns of horizons from before the start of the server",
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
        HorizonBatch: "batches hold horizons",
        HorizonInRecovery: "standbys have no horizon",
        HorizonInWorker: "parallel workers have no horizon",
        HorizonLearned: "no horizon for snapshots that are older than what was learned",
        HorizonLast: "horizons of a transaction with one snapshot do not go back",
        HorizonRecalled: "unless somebody has accepted the clock meanwhile",
        HorizonLeft: "sessions without memory matter until their transactions have ended for all",
        HorizonForeign: "no horizon after sessions of another version",
        CoverInWorker: "parallel workers cover nothing",
        CoverAhead: "an ID that is ahead of the clock by the layout that is named is not covered",
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
