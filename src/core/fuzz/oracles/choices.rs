//! Makes decisions from bytes.

/// Reads decisions from bytes. After the last byte, every decision is 0.
pub struct Choices<'a>(pub &'a [u8]);

impl Choices<'_> {
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    pub fn number(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()].clone()
    }

    /// An instant: near the ends of time, near one of these, or anywhere.
    pub fn instant(&mut self, near: &[i64]) -> i64 {
        match self.byte() % 8 {
            0 => i64::MIN,
            1 => i64::MAX,
            2 => self.number() as i64,
            _ if near.is_empty() => 0,
            3 => self.pick(near),
            4 => self.pick(near).saturating_sub(1),
            5 => self.pick(near).saturating_add(1),
            _ => self.pick(near).saturating_add(i64::from(self.number() as i32)),
        }
    }
}
