//! Reads and writes the text of a sno in a vector register if the processor can do that, and otherwise as the core does, with the
//! same results. This is a crate of its own because the core has no unsafe code.

#![deny(missing_docs)]
#![allow(unsafe_code, reason = "instructions that not every processor has")]

use flake_core::Sno;

/// Does the same as [`Sno::encode`].
#[inline]
pub fn encode(sno: &Sno) -> [u8; 16] {
    #[cfg(target_arch = "x86_64")]
    if *vector::IS_FAST {
        let mut text = [0; 16];
        // SAFETY: the processor has the instructions.
        unsafe { vector::encode(sno, &mut text) };
        return text;
    }
    sno.encode()
}

/// Does the same as [`Sno::decode`].
#[inline]
pub fn decode(text: &[u8; 16]) -> Result<Sno, usize> {
    #[cfg(target_arch = "x86_64")]
    if *vector::IS_FAST {
        // SAFETY: the processor has the instructions.
        return unsafe { vector::decode(text) };
    }
    Sno::decode(text)
}

#[cfg(target_arch = "x86_64")]
mod vector {
    use std::arch::x86_64::*;
    use std::sync::LazyLock;

    use flake_core::Sno;
    use flake_core::sno::{DIGIT_BITS, first_invalid};

    /// Whether the processor deposits and extracts bits fast. AMD's processors before Zen 3, which lack VAES, need dozens of cycles
    /// for it.
    pub static IS_FAST: LazyLock<bool> = LazyLock::new(|| {
        is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("sse4.1") && is_x86_feature_detected!("vaes")
    });

    /// Reverses the bytes of each half: words begin with their lowest byte, texts with their highest digit.
    #[inline]
    #[target_feature(enable = "sse4.1")]
    fn reversed(halves: __m128i) -> __m128i {
        _mm_shuffle_epi8(halves, _mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7))
    }

    /// Converts values below 32 to characters: they start at '2', and those from 8 up jump to 'a'.
    #[inline]
    #[target_feature(enable = "sse4.1")]
    fn characters(values: __m128i) -> __m128i {
        let letters = _mm_cmpgt_epi8(values, _mm_set1_epi8(7));
        let jump = _mm_and_si128(letters, _mm_set1_epi8(39));
        _mm_add_epi8(_mm_add_epi8(values, _mm_set1_epi8(50)), jump)
    }

    /// Writes to the caller's memory, because Rust returns no vector in a register.
    #[target_feature(enable = "bmi2,sse4.1")]
    pub fn encode(sno: &Sno, text: &mut [u8; 16]) {
        let (first, last) = sno.halves();
        let (first, last) = (_pdep_u64(first, DIGIT_BITS), _pdep_u64(last, DIGIT_BITS));
        let digits = characters(reversed(_mm_set_epi64x(last as i64, first as i64)));
        // SAFETY: it stores 16 bytes at any alignment.
        unsafe { _mm_storeu_si128(text.as_mut_ptr().cast(), digits) }
    }

    #[target_feature(enable = "bmi2,sse4.1")]
    pub fn decode(text: &[u8; 16]) -> Result<Sno, usize> {
        // SAFETY: both types are 16 bytes of any value.
        let given = unsafe { std::mem::transmute::<[u8; 16], __m128i>(*text) };
        let letters = _mm_cmpgt_epi8(given, _mm_set1_epi8(b'9' as i8));
        let offset = _mm_add_epi8(_mm_set1_epi8(50), _mm_and_si128(letters, _mm_set1_epi8(39)));
        let values = _mm_and_si128(_mm_sub_epi8(given, offset), _mm_set1_epi8(31));
        // If a character reads as the value of another character, it is not a digit.
        if _mm_movemask_epi8(_mm_cmpeq_epi8(characters(values), given)) != 0xffff {
            return Err(first_invalid(text));
        }
        let values = reversed(values);
        let (first, last) = (_mm_cvtsi128_si64(values) as u64, _mm_extract_epi64::<1>(values) as u64);
        Ok(Sno::from_halves(_pext_u64(first, DIGIT_BITS), _pext_u64(last, DIGIT_BITS)))
    }
}
