//! The text of a sno: 16 digits of base 32, `2-9a-x`, in the order of ASCII, so that texts sort like the bytes.
//!
//! Three steps spread 40 bits over a word until each byte holds 5 bits; then all bytes become characters at once. Reading
//! reverses this. A character that reads as a value whose character is another one was not a digit.

use super::Sno;

/// The length of the text.
const LENGTH: usize = 16;

/// 40 bits.
const HALF: u64 = (1 << 40) - 1;

/// Puts five bits into each byte, the first digit into the most significant one.
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
const DIGIT_BITS: u64 = 31 * ONES;
/// From a digit's value to its character: values start at '2', and those from 8 up jump to 'a'.
const TWO: u64 = b'2' as u64 * ONES;
const JUMP: u64 = (b'a' - b'9' - 1) as u64;

/// Converts eight values below 32 to characters.
const fn characters(values: u64) -> u64 {
    // Adding 120 sets the top bit of bytes from 8 up.
    let letters = (values + 120 * ONES) >> 7 & ONES;
    values + TWO + letters * JUMP
}

/// Converts eight characters to values; the result is right only if all are digits.
const fn values(characters: u64) -> u64 {
    let letters = characters >> 6 & ONES;
    characters.wrapping_sub(TWO + letters * JUMP) & DIGIT_BITS
}

impl Sno {
    /// The first and the last 40 bits.
    #[inline]
    const fn halves(&self) -> (u64, u64) {
        let [a, b, c, d, e, f, g, h, i, j] = self.0;
        // Two overlapping loads of eight bytes each.
        let (first, last) =
            (u64::from_be_bytes([a, b, c, d, e, f, g, h]), u64::from_be_bytes([c, d, e, f, g, h, i, j]));
        (first >> 24, last & HALF)
    }

    /// Returns the sno with the lowest 40 bits of these halves.
    #[inline]
    const fn from_halves(first: u64, last: u64) -> Self {
        let last = last & HALF;
        let [a, b, c, d, e, f, g, h] = (first << 24 | last >> 16).to_be_bytes();
        let [i, j] = (last as u16).to_be_bytes();
        Self([a, b, c, d, e, f, g, h, i, j])
    }

    /// Writes the 16 characters.
    #[inline]
    pub const fn encode(&self) -> [u8; LENGTH] {
        let (first, last) = self.halves();
        let (first, last) = (characters(spread(first)), characters(spread(last)));
        ((first as u128) << 64 | last as u128).to_be_bytes()
    }

    /// Reads 16 characters.
    ///
    /// # Errors
    /// The index of the first character that is not a digit.
    #[inline]
    pub const fn decode(text: &[u8; LENGTH]) -> Result<Self, usize> {
        let number = u128::from_be_bytes(*text);
        let (first, last) = ((number >> 64) as u64, number as u64);
        let (first_values, last_values) = (values(first), values(last));
        if characters(first_values) != first || characters(last_values) != last {
            return Err(first_invalid(text));
        }
        Ok(Self::from_halves(gather(first_values), gather(last_values)))
    }
}

/// Returns the index of the first character that is not a digit; there has to be one.
#[cold]
const fn first_invalid(text: &[u8; LENGTH]) -> usize {
    let mut index = 0;
    while matches!(text[index], b'2'..=b'9' | b'a'..=b'x') {
        index += 1;
    }
    index
}
