//! The partitions of sno as sources of IDs.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::CStr;
use std::mem::ManuallyDrop;
use std::thread::LocalKey;

use flake_core::sno::{NAME, automatic_share, exhausted, key, partition_share, unit_to_generate_in};
use flake_core::{Answer, Node, Remaining, Resumable, Share, Slot, Sno, SnoGenerator};

use super::generators::{IdSource, Store};
use super::shelf::Shelf;
use crate::error::Error;
use crate::ledger::Backend;

thread_local! {
    static STORE: Store<SnoSource> = const { ManuallyDrop::new(RefCell::new(Shelf::new())) };
}

/// A partition that the caller gives, or the automatic ones.
#[derive(Clone, Copy, PartialEq)]
pub struct SnoSource {
    pub partition: Option<i32>,
}

impl IdSource for SnoSource {
    type Generator = SnoGenerator;
    /// The metabyte.
    type Argument = u8;
    const FUNCTION: &'static CStr = c"sno_next()";

    #[inline]
    fn store() -> &'static LocalKey<Store<Self>> {
        &STORE
    }

    fn key(&self) -> u64 {
        key(self.partition)
    }

    fn check(&self, now: i64) -> Result<(), Error> {
        unit_to_generate_in(now)?;
        Ok(())
    }

    fn share(&self, node: Node, slot: Slot) -> Result<Share, flake_core::Error> {
        match self.partition {
            Some(partition) => partition_share(partition.into(), node, slot),
            None => automatic_share(node, slot),
        }
    }

    fn begin(&self, backend: &mut Backend, share: Share) -> Result<Resumable<SnoGenerator>, Error> {
        Resumable::begin(backend, self.key(), share)
    }

    #[inline]
    fn next(generator: &mut SnoGenerator, now: i64, metabyte: u8) -> Answer<Sno> {
        generator.next(now, metabyte)
    }

    #[inline]
    fn remaining(generator: &SnoGenerator, now: i64) -> Remaining {
        generator.remaining(now)
    }

    fn layout_name(&self) -> Cow<'static, str> {
        NAME
    }

    fn exhausted(&self) -> flake_core::Error {
        exhausted()
    }
}
