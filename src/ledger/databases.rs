//! A set of databases that forgets the oldest ones.

const ROOM: usize = 64;

/// The OIDs of up to 64 databases, as plain numbers.
#[derive(Clone, Copy)]
pub struct Databases {
    oids: [u32; ROOM],
    added: usize,
}

impl Default for Databases {
    fn default() -> Self {
        Self { oids: [0; ROOM], added: 0 }
    }
}

impl Databases {
    pub fn contains(&self, oid: u32) -> bool {
        self.oids.contains(&oid)
    }

    pub fn add(&mut self, oid: u32) {
        if !self.contains(oid) {
            self.oids[self.added % ROOM] = oid;
            self.added += 1;
        }
    }
}
