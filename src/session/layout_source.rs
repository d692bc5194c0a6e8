//! Layouts as sources of IDs.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::CStr;
use std::mem::ManuallyDrop;
use std::thread::LocalKey;

use flake_core::{Answer, Generator, Layout, Node, Origin, Remaining, Resumable, Share, Slot};

use super::generators::{IdSource, Store};
use super::shelf::Shelf;
use crate::clock;
use crate::error::Error;
use crate::layouts::{by_name, custom, is_same_name};
use crate::ledger::Backend;

thread_local! {
    static STORE: Store<LayoutSource> = const { ManuallyDrop::new(RefCell::new(Shelf::new())) };
}

/// A layout, and the catalog version in which it has its name.
#[derive(Clone, Copy)]
pub struct LayoutSource {
    pub layout: &'static Layout,
    catalog_version: u64,
}

impl LayoutSource {
    /// Returns the layout with this name, or raises an error.
    pub fn by_name(name: &[u8]) -> Self {
        let catalog_version = custom::catalog_version();
        Self { layout: by_name(name), catalog_version }
    }

    /// Returns whether the layout is known to have this name.
    #[inline]
    pub fn is_known_as(&self, name: &[u8]) -> bool {
        is_same_name(self.layout.name().as_bytes(), name) && self.catalog_version == custom::catalog_version()
    }
}

impl IdSource for LayoutSource {
    type Generator = Generator;
    type Argument = ();
    const FUNCTION: &'static CStr = c"flake_next()";

    #[inline]
    fn store() -> &'static LocalKey<Store<Self>> {
        &STORE
    }

    /// Layouts of the same bits make the same IDs, whatever their names.
    fn key(&self) -> u64 {
        self.layout.key()
    }

    fn check(&self, now: i64) -> Result<(), Error> {
        if !self.layout.generates() {
            return Err(Error::ReadOnly { layout: self.layout_name() });
        }
        self.layout.tick_to_generate_in(now)?;
        Ok(())
    }

    fn share(&self, node: Node, slot: Slot) -> Result<Share, flake_core::Error> {
        Share::new(self.layout, node, slot)
    }

    fn begin(&self, backend: &mut Backend, share: Share) -> Result<Resumable<Generator>, Error> {
        // A rolling sequence begins anywhere, or short sessions would all use the same numbers.
        let origin = Origin { layout: self.layout.clone(), share, position: rand::random() };
        Resumable::begin(backend, self.key(), origin)
    }

    #[inline]
    fn next(generator: &mut Generator, now: i64, (): ()) -> Answer {
        generator.next(now, rand::random)
    }

    #[inline]
    fn remaining(generator: &Generator, now: i64) -> Remaining {
        generator.remaining(now)
    }

    /// The layouts may differ in their sequence rules and last ticks, and in whether flake makes their IDs.
    fn adopt(&self, began: &Self, resumable: &mut Resumable<Generator>) -> Result<(), Error> {
        if !std::ptr::eq(self.layout, began.layout) {
            self.check(clock::now())?;
            resumable.adopt(self.layout);
        }
        Ok(())
    }

    fn layout_name(&self) -> Cow<'static, str> {
        self.layout.name().to_owned().into()
    }

    fn exhausted(&self) -> flake_core::Error {
        self.layout.exhausted()
    }
}
