//! Layouts as sources of IDs, under their current names.

use std::ops::Deref;

use flake_core::Layout;

use crate::layouts::{by_name, custom, is_same_name};

/// A layout, and the catalog version in which it has its name.
#[derive(Clone, Copy)]
pub struct LayoutSource {
    layout: &'static Layout,
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

impl Deref for LayoutSource {
    type Target = Layout;

    fn deref(&self) -> &Layout {
        self.layout
    }
}

/// Layouts with the same bits can have different last ticks, and one of them may be read-only.
impl PartialEq for LayoutSource {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.layout, other.layout)
    }
}
