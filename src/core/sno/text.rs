//! The text of a sno: 16 digits of base 32, `2-9a-x`, in the order of ASCII, so that texts sort like the bytes.
//!
//! 40 bits become 8 digits in a word: three steps halve the lanes until each byte holds 5 bits, then all bytes become
//! characters at once. Reading is the same way back; what does not write itself again was no digit.

use super::Sno;

/// Length of the text.
const LENGTH: usize = 16;

/// 40 bits.
const HALF: u64 = (1 << 40) - 1;

/// Five bits in each byte, the first digit in the most significant one.
const fn spread(x: u64) -> u64 {
    let x = (x & 0x000000ff_fff00000) << 12 | (x & 0xfffff);
    let x = (x & 0x000ffc00_000ffc00) << 6 | (x & 0x000003ff_000003ff);
    (x & 0x03e003e0_03e003e0) << 3 | (x & 0x001f001f_001f001f)
}

const fn gather(x: u64) -> u64 {
    let x = (x & 0x1f001f00_1f001f00) >> 3 | (x & 0x001f001f_001f001f);
    let x = (x & 0x03ff0000_03ff0000) >> 6 | (x & 0x000003ff_000003ff);
    (x & 0x000fffff_00000000) >> 12 | (x & 0xfffff)
}

const ONES: u64 = 0x0101_0101_0101_0101;
/// The bits of a word that hold eight digits: the lower five of every byte.
pub const DIGIT_BITS: u64 = 31 * ONES;
/// From a digit's value to its character: '2' on, and from 8 on a jump to 'a'.
const TWO: u64 = b'2' as u64 * ONES;
const JUMP: u64 = (b'a' - b'9' - 1) as u64;

/// Eight values below 32 as characters.
const fn characters(values: u64) -> u64 {
    // Adding 120 carries into a byte's top bit from 8 on.
    let letters = (values + 120 * ONES) >> 7 & ONES;
    values + TWO + letters * JUMP
}

/// Eight characters as values; only right if all are digits.
const fn values(characters: u64) -> u64 {
    let letters = characters >> 6 & ONES;
    characters.wrapping_sub(TWO + letters * JUMP) & DIGIT_BITS
}

impl Sno {
    /// The first and the last 40 bits.
    #[inline]
    pub const fn halves(&self) -> (u64, u64) {
        let [a, b, c, d, e, f, g, h, i, j] = self.0;
        // Two loads of eight bytes each, which overlap.
        let (first, last) =
            (u64::from_be_bytes([a, b, c, d, e, f, g, h]), u64::from_be_bytes([c, d, e, f, g, h, i, j]));
        (first >> 24, last & HALF)
    }

    /// The sno with these halves, of which the lowest 40 bits count.
    #[inline]
    pub const fn from_halves(first: u64, last: u64) -> Self {
        let last = last & HALF;
        let [a, b, c, d, e, f, g, h] = (first << 24 | last >> 16).to_be_bytes();
        let [i, j] = (last as u16).to_be_bytes();
        Self([a, b, c, d, e, f, g, h, i, j])
    }

    /// The 16 characters.
    #[inline]
    pub const fn encode(&self) -> [u8; LENGTH] {
        let (first, last) = self.halves();
        let (first, last) = (characters(spread(first)), characters(spread(last)));
        ((first as u128) << 64 | last as u128).to_be_bytes()
    }

    /// The sno that 16 characters stand for; else where the first one is that is no digit, from 0.
    #[inline]
    pub const fn decode(text: &[u8; LENGTH]) -> Result<Self, usize> {
        let number = u128::from_be_bytes(*text);
        let (first, last) = ((number >> 64) as u64, number as u64);
        let (first_values, last_values) = (values(first), values(last));
        if characters(first_values) != first || characters(last_values) != last {
            return Err(first_wrong(text));
        }
        Ok(Self::from_halves(gather(first_values), gather(last_values)))
    }
}

/// Where the first character of a text is that is no digit, from 0; there has to be one.
#[cold]
pub const fn first_wrong(text: &[u8; LENGTH]) -> usize {
    let mut place = 0;
    while matches!(text[place], b'2'..=b'9' | b'a'..=b'x') {
        place += 1;
    }
    place
}
