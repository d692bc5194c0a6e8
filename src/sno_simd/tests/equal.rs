//! Both ways to read and write a sno give the same results.

use flake_core::Sno;

/// Miri needs a millisecond for each.
const SNOS: usize = if cfg!(miri) { 300 } else { 1_000_000 };

#[test]
fn the_same_as_the_core() {
    let mut state = 0x2545f4914f6cdd1du64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..SNOS {
        let [a, b, c, d, e, f, g, h] = random().to_be_bytes();
        let [i, j, index, other, ..] = random().to_be_bytes();
        let sno = Sno::from_bytes([a, b, c, d, e, f, g, h, i, j]);
        let mut text = flake_sno_simd::encode(&sno);
        assert_eq!(text, sno.encode());
        assert_eq!(flake_sno_simd::decode(&text), Ok(sno));
        text[usize::from(index & 15)] = other;
        assert_eq!(flake_sno_simd::decode(&text), Sno::decode(&text));
    }
}
