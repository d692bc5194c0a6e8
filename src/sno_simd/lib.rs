//! The text of a sno in a vector register, where the processor can; the core's own way elsewhere, with the same results.
//! Apart from the core, which has no unsafe code.

use flake_core::Sno;

/// [`Sno::encode`].
#[inline]
pub fn encode(sno: &Sno) -> [u8; 16] {
    #[cfg(target_arch = "x86_64")]
    if vector::is_fast() {
        let mut text = [0; 16];
        // SAFETY: the processor has what the function needs.
        unsafe { vector::encode(sno, &mut text) };
        return text;
    }
    sno.encode()
}

/// [`Sno::decode`].
#[inline]
pub fn decode(text: &[u8; 16]) -> Result<Sno, usize> {
    #[cfg(target_arch = "x86_64")]
    if vector::is_fast() {
        // SAFETY: the processor has what the function needs.
        return unsafe { vector::decode(text) };
    }
    Sno::decode(text)
}

#[cfg(target_arch = "x86_64")]
mod vector {
    use std::arch::x86_64::*;
    use std::sync::atomic::{AtomicU8, Ordering};

    use flake_core::Sno;
    use flake_core::sno::{DIGIT_BITS, first_wrong};

    /// Whether bits are deposited and extracted at once. AMD's processors before Zen 3 can, but take dozens of cycles for it; they
    /// have no VAES.
    #[inline]
    pub fn is_fast() -> bool {
        static KNOWN: AtomicU8 = AtomicU8::new(0);
        match KNOWN.load(Ordering::Relaxed) {
            0 => {
                let fast = is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("sse4.1")
                    && is_x86_feature_detected!("vaes");
                KNOWN.store(if fast { 2 } else { 1 }, Ordering::Relaxed);
                fast
            }
            known => known == 2,
        }
    }

    /// The order of bytes turned within each half: words have their lowest byte first, texts their highest digit.
    #[inline]
    #[target_feature(enable = "sse4.1")]
    fn turned(halves: __m128i) -> __m128i {
        _mm_shuffle_epi8(halves, _mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7))
    }

    /// Values below 32 as characters: '2' on, and from 8 on a jump to 'a'.
    #[inline]
    #[target_feature(enable = "sse4.1")]
    fn characters(values: __m128i) -> __m128i {
        let letters = _mm_cmpgt_epi8(values, _mm_set1_epi8(7));
        let jump = _mm_and_si128(letters, _mm_set1_epi8(39));
        _mm_add_epi8(_mm_add_epi8(values, _mm_set1_epi8(50)), jump)
    }

    /// Into a place of the caller's: a vector is not returned in a register.
    #[target_feature(enable = "bmi2,sse4.1")]
    pub fn encode(sno: &Sno, text: &mut [u8; 16]) {
        let (first, last) = sno.halves();
        let (first, last) = (_pdep_u64(first, DIGIT_BITS), _pdep_u64(last, DIGIT_BITS));
        let digits = characters(turned(_mm_set_epi64x(last as i64, first as i64)));
        // SAFETY: it stores 16 bytes, at any alignment.
        unsafe { _mm_storeu_si128(text.as_mut_ptr().cast(), digits) }
    }

    #[target_feature(enable = "bmi2,sse4.1")]
    pub fn decode(text: &[u8; 16]) -> Result<Sno, usize> {
        // SAFETY: both are 16 bytes, of any value.
        let given = unsafe { std::mem::transmute::<[u8; 16], __m128i>(*text) };
        let letters = _mm_cmpgt_epi8(given, _mm_set1_epi8(b'9' as i8));
        let offset = _mm_add_epi8(_mm_set1_epi8(50), _mm_and_si128(letters, _mm_set1_epi8(39)));
        let values = _mm_and_si128(_mm_sub_epi8(given, offset), _mm_set1_epi8(31));
        // What does not write itself again was no digit.
        if _mm_movemask_epi8(_mm_cmpeq_epi8(characters(values), given)) != 0xffff {
            return Err(first_wrong(text));
        }
        let values = turned(values);
        let (first, last) = (_mm_cvtsi128_si64(values) as u64, _mm_extract_epi64::<1>(values) as u64);
        Ok(Sno::from_halves(_pext_u64(first, DIGIT_BITS), _pext_u64(last, DIGIT_BITS)))
    }
}
