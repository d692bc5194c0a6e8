//! Snos: as bytes, as text, and as parts.

use std::ops::Bound;

use flake_core::sno::TICK;
use flake_core::{Error, Sno, SnoParts, TextFault};

use super::choices::Choices;

const DIGITS: &[u8] = b"23456789abcdefghijklmnopqrstuvwx";

/// Checks any text, and snos with the first bytes of the text.
pub fn sno(data: &[u8]) {
    match Sno::parse(data) {
        Ok(sno) => assert_eq!(&sno.encode(), data),
        Err(Error::SnoText { fault: TextFault::Length { found, expected: 16 }, .. }) => {
            assert!(found == data.len() && found != 16);
        }
        Err(Error::SnoText { fault: TextFault::Character { character, position }, .. }) => {
            let first = data.iter().position(|byte| !DIGITS.contains(byte));
            assert_eq!(first, Some(position - 1));
            assert_eq!(character, char::from(data[position - 1]));
        }
        Err(other) => panic!("{other:?}"),
    }
    assert_eq!(Sno::from_slice(data).is_ok(), data.len() == 10);

    let mut choices = Choices(data);
    let [sno, other] = [(); 2].map(|()| Sno::from_bytes(std::array::from_fn(|_| choices.byte())));
    let number = sno.bytes().iter().fold(0u128, |number, &byte| number << 8 | u128::from(byte));
    let text = sno.encode();
    for (place, digit) in text.iter().rev().enumerate() {
        assert_eq!(*digit, DIGITS[(number >> (5 * place)) as usize & 31]);
    }
    assert_eq!(Sno::decode(&text), Ok(sno));
    assert_eq!(Sno::from_slice(sno.bytes()), Ok(sno));
    assert_eq!(sno.cmp(&other), sno.encode().cmp(&other.encode()));
    let parts = SnoParts {
        tick: (number >> 41) as u64,
        tick_tock: number >> 40 & 1 == 1,
        metabyte: (number >> 32) as u8,
        partition: (number >> 16) as u16,
        sequence: number as u16,
    };
    assert_eq!((sno.parts(), parts.pack()), (parts, sno));
    let drawn = sno.explain();
    assert_eq!(drawn.lines().nth(2).unwrap().split(' ').collect::<String>(), format!("{number:080b}"));
    is_in_its_spans(sno, &mut choices);
}

fn is_in_its_spans(sno: Sno, choices: &mut Choices<'_>) {
    let (start, end) = (sno.instant(), sno.end());
    assert_eq!(
        (end - start, Sno::tick_at(start), Sno::tick_at(end - 1)),
        (TICK, Ok(sno.parts().tick), Ok(sno.parts().tick))
    );
    assert!((Sno::min_at(start).unwrap()..=Sno::max_at(start).unwrap()).contains(&sno));
    let (from, to) = (choices.instant(&[start, end]), choices.instant(&[start, end]));
    let found = Sno::during(Bound::Included(from), Bound::Excluded(to));
    if from < to {
        assert_eq!(found.is_some_and(|(first, last)| (first..=last).contains(&sno)), from < end && start < to);
    }
}
