//! A session usually needs a few generators again and again, but may have thousands. So the generators that were used last are hot:
//! they come first in a list, where the next ID finds them without a lookup.

use std::collections::{BTreeMap, TryReserveError};

/// How many generators are hot.
const HOT: usize = 8;

/// Generators by their keys.
pub struct GeneratorMap<G> {
    /// The hot ones come first.
    entries: Vec<(u64, G)>,
    indexes: BTreeMap<u64, usize>,
    /// The index of the hot one that gives up its place next.
    next_victim: usize,
}

impl<G> GeneratorMap<G> {
    pub const fn new() -> Self {
        Self { entries: Vec::new(), indexes: BTreeMap::new(), next_victim: 0 }
    }

    #[inline]
    pub fn hot_mut(&mut self) -> impl Iterator<Item = &mut G> {
        self.entries.iter_mut().take(HOT).map(|(_, generator)| generator)
    }

    pub fn all(&self) -> impl Iterator<Item = &G> {
        self.entries.iter().map(|(_, generator)| generator)
    }

    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut G> {
        self.entries.iter_mut().map(|(_, generator)| generator)
    }

    pub fn contains(&self, key: u64) -> bool {
        self.indexes.contains_key(&key)
    }

    /// Inserts a generator with a new key, if there is memory for it.
    pub fn insert(&mut self, key: u64, generator: G) -> Result<(), TryReserveError> {
        self.entries.try_reserve(1)?;
        self.entries.push((key, generator));
        self.indexes.insert(key, self.entries.len() - 1);
        Ok(())
    }

    /// Makes the generator with this key hot, and returns it.
    pub fn heat(&mut self, key: u64) -> Option<&mut G> {
        let mut index = *self.indexes.get(&key)?;
        if index >= HOT {
            let hot = self.next_victim;
            self.next_victim = (hot + 1) % HOT;
            self.entries.swap(index, hot);
            self.indexes.insert(self.entries[index].0, index);
            self.indexes.insert(key, hot);
            index = hot;
        }
        Some(&mut self.entries[index].1)
    }
}
