//! Where the bits of a number lie in a 64-bit ID.

/// A run of adjacent bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Bits {
    pub shift: u32,
    pub width: u32,
}

impl Bits {
    pub const NONE: Self = Self { shift: 0, width: 0 };

    /// The largest number that fits these bits.
    pub const fn max(self) -> u64 {
        if self.width == 0 { 0 } else { u64::MAX >> (64 - self.width) }
    }

    pub const fn mask(self) -> u64 {
        self.max() << self.shift
    }

    pub const fn get(self, id: u64) -> u64 {
        (id >> self.shift) & self.max()
    }

    /// Shifts `number`, whose range the caller has checked, to these bits.
    pub const fn put(self, number: u64) -> u64 {
        (number & self.max()) << self.shift
    }
}

/// A number in several runs of bits, the least significant run first. Adjacent runs are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Scattered {
    runs: [Bits; MAX_RUNS],
    len: usize,
}

/// How many runs a number may have.
pub(crate) const MAX_RUNS: usize = 4;

impl Scattered {
    pub const NONE: Self = Self { runs: [Bits::NONE; MAX_RUNS], len: 0 };

    pub const fn one(bits: Bits) -> Self {
        if bits.width == 0 { Self::NONE } else { Self::NONE.extended_by(bits) }
    }

    /// Returns the number with `bits` as its new most significant part.
    pub const fn extended_by(mut self, bits: Bits) -> Self {
        if self.len > 0 {
            let top = self.runs[self.len - 1];
            if top.shift + top.width == bits.shift {
                self.runs[self.len - 1].width += bits.width;
                return self;
            }
        }
        self.runs[self.len] = bits;
        self.len += 1;
        self
    }

    pub fn width(&self) -> u32 {
        self.runs[..self.len].iter().map(|run| run.width).sum()
    }

    pub fn mask(&self) -> u64 {
        self.put(u64::MAX)
    }

    /// Whether all bits, if there are any, lie next to each other.
    pub const fn is_one_run(&self) -> bool {
        self.len <= 1
    }

    /// The least significant run.
    pub const fn finest(&self) -> Bits {
        self.runs[0]
    }

    pub fn get(&self, id: u64) -> u64 {
        self.runs[..self.len].iter().rev().fold(0, |number, run| number << run.width | run.get(id))
    }

    pub fn put(&self, mut number: u64) -> u64 {
        let mut id = 0;
        for run in &self.runs[..self.len] {
            id |= run.put(number);
            number >>= run.width;
        }
        id
    }
}
