//! A session usually needs a few generators again and again, but may have thousands. So the generators that were used last are at
//! hand: they come first in a list, where the next ID finds them without a lookup.

use std::collections::BTreeMap;

/// How many generators are at hand.
const NEAR: usize = 8;

pub struct Shelf<T> {
    /// The generators at hand come first.
    things: Vec<(u64, T)>,
    indexes: BTreeMap<u64, usize>,
    /// The index of the one at hand that gives up its place next.
    next_to_leave: usize,
}

impl<T> Shelf<T> {
    pub const fn new() -> Self {
        Self { things: Vec::new(), indexes: BTreeMap::new(), next_to_leave: 0 }
    }

    /// Returns the generators at hand.
    #[inline]
    pub fn at_hand(&mut self) -> impl Iterator<Item = &mut T> {
        self.things.iter_mut().take(NEAR).map(|(_, thing)| thing)
    }

    /// Returns all generators.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.things.iter().map(|(_, thing)| thing)
    }

    /// Returns all generators.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.things.iter_mut().map(|(_, thing)| thing)
    }

    /// Returns whether there is a generator with this key.
    pub fn has(&self, key: u64) -> bool {
        self.indexes.contains_key(&key)
    }

    /// Adds a generator with a new key.
    pub fn add(&mut self, key: u64, thing: T) {
        self.things.push((key, thing));
        self.indexes.insert(key, self.things.len() - 1);
    }

    /// Brings the generator with this key to hand, and returns it.
    pub fn bring_to_hand(&mut self, key: u64) -> Option<&mut T> {
        let mut index = *self.indexes.get(&key)?;
        if index >= NEAR {
            let near = self.next_to_leave;
            self.next_to_leave = (near + 1) % NEAR;
            self.things.swap(index, near);
            self.indexes.insert(self.things[index].0, index);
            self.indexes.insert(key, near);
            index = near;
        }
        Some(&mut self.things[index].1)
    }
}
