//! Public IDs: the vectors of another implementation, refused inputs, and ranges of secrets.

use std::collections::HashSet;

use aes::Aes128;
use aes::cipher::{BlockCipherDecrypt, KeyInit};
use flake_core::seal::{Cipher, MOST_RANGES, Range, Ranges, fingerprint, is_name, read, write};
use proptest::prelude::*;

const VECTORS: &str = include_str!("../../../tests/vectors/seal.csv");
const SECRET: [u8; 16] = *b"a secret of test";

fn bytes(hex: &str) -> [u8; 16] {
    u128::from_str_radix(hex, 16).unwrap().to_be_bytes()
}

/// IDs for tests: positive and negative, with few bits and with many.
fn ids(count: u64) -> impl Iterator<Item = i64> {
    (0..count).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64) >> (n % 64))
}

fn is_marked(block: u128) -> bool {
    (block >> 76 & 0xf, block >> 62 & 3) == (8, 2)
}

#[test]
fn ids_and_public_ids_match_the_vectors() {
    let (mut sealed, mut refused) = (0, 0);
    for line in VECTORS.lines().skip(1) {
        let [secret, id, uuid, text] = line.split(',').collect::<Vec<_>>().try_into().expect(line);
        let cipher = Cipher::new(&bytes(secret));
        let block = read("usr", uuid.as_bytes()).expect(line);
        if id.is_empty() {
            assert_eq!(cipher.open(block), None, "{line}");
            refused += 1;
            continue;
        }
        let id = id.parse().unwrap();
        assert_eq!(cipher.seal(id), block, "{line}");
        assert_eq!(cipher.open(block), Some(id), "{line}");
        assert_eq!(write("usr", block), format!("usr_{text}"), "{line}");
        sealed += 1;
    }
    assert!(sealed > 100 && refused > 200, "{sealed} and {refused}");
}

/// The blocks of a walk are permutations of each other. If blocks before its end opened, an ID would have several names.
#[test]
fn blocks_before_the_end_of_a_walk_are_refused() {
    let (cipher, aes) = (Cipher::new(&SECRET), Aes128::new(&SECRET.into()));
    let mut before = 0;
    for id in ids(2_000) {
        let mut block = cipher.seal(id).to_be_bytes().into();
        loop {
            aes.decrypt_block(&mut block);
            let block = u128::from_be_bytes(block.into());
            if is_marked(block) {
                break;
            }
            assert_eq!(cipher.open(block), None, "{id}");
            before += 1;
        }
    }
    // A walk has 64 steps on average.
    assert!((110_000..142_000).contains(&before), "{before}");
}

#[test]
fn every_flipped_bit_is_refused() {
    let cipher = Cipher::new(&SECRET);
    for id in ids(10_000) {
        let sealed = cipher.seal(id);
        assert!((0..128).all(|bit| cipher.open(sealed ^ 1 << bit).is_none()), "{id}");
    }
}

#[test]
fn another_secret_opens_nothing() {
    let (cipher, other) = (Cipher::new(&SECRET), Cipher::new(b"b secret of test"));
    assert!(ids(50_000).all(|id| other.open(cipher.seal(id)).is_none()), "another secret has opened an ID");
}

/// Sealed IDs have another order than the IDs, and none of their bits is constant.
#[test]
fn neighbours_look_unrelated() {
    let cipher = Cipher::new(&SECRET);
    let sealed: Vec<_> = (0..10_000).map(|id| cipher.seal(id)).collect();
    assert_eq!(sealed.iter().collect::<HashSet<_>>().len(), sealed.len());
    let rising = sealed.windows(2).filter(|pair| pair[0] < pair[1]).count();
    assert!((4_800..5_200).contains(&rising), "{rising}");
    for bit in (0..128).filter(|bit| !matches!(bit, 62..64 | 76..80)) {
        let set = sealed.iter().filter(|&&block| block >> bit & 1 == 1).count();
        assert!((4_700..5_300).contains(&set), "bit {bit}: {set}");
    }
}

#[test]
fn only_lower_case_words_are_names() {
    for name in ["a", "usr", "line_item", "a_b_c", &"x".repeat(63)] {
        assert!(is_name(name.as_bytes()), "{name}");
    }
    for name in ["", "_", "_a", "a_", "Usr", "usr1", "usr-x", "usr x", "ü", "u'r", &"x".repeat(64)] {
        assert!(!is_name(name.as_bytes()), "{name}");
    }
}

#[test]
fn malformed_texts_are_refused() {
    let sealed = Cipher::new(&SECRET).seal(42);
    let text = write("line_item", sealed);
    assert_eq!(read("line_item", text.as_bytes()), Some(sealed));
    let digits = text.strip_prefix("line_item_").unwrap();
    // D stands for the right digits.
    let wrong = ["D", "line_D", "item_D", "line_itemD", "line_item__D", "line_items_D", "Line_item_D", "line_item_D0"]
        .map(|text| text.replace('D', digits));
    let others = [
        text.to_uppercase(),
        format!(" {text}"),
        format!("{text}\n"),
        text[..text.len() - 1].to_owned(),
        format!("line_item_8{}", &digits[1..]),
        format!("line_item_z{}", &digits[1..]),
        format!("line_item_{}i", &digits[..25]),
        format!("line_item_{}é", &digits[..24]),
        String::new(),
    ];
    for text in wrong.into_iter().chain(others) {
        assert_eq!(read("line_item", text.as_bytes()), None, "{text}");
    }
    let uuid = "e56b757c-622d-8aa0-aa0c-9ef247500cf0";
    assert!(read("usr", uuid.as_bytes()).is_some());
    assert_eq!(read("usr", uuid.to_uppercase().as_bytes()), read("usr", uuid.as_bytes()));
    for text in [
        uuid.replace('-', ""),
        format!("{{{uuid}}}"),
        uuid.replace('f', "g"),
        uuid.replace("e56b757c-622d", "e56b-757c622d"),
        uuid.replace("e5", "+5"),
    ] {
        assert_eq!(read("usr", text.as_bytes()), None, "{text}");
    }
}

fn ranges(from: &[i64]) -> Option<Ranges> {
    Ranges::new(from.iter().enumerate().map(|(n, &from)| (from, Cipher::new(&[n as u8; 16]))).collect())
}

#[test]
fn ranges_are_whole_and_in_order() {
    assert!(ranges(&[i64::MIN]).is_some(), "a single range of all IDs must be valid");
    assert!(ranges(&[i64::MIN, -5, 0, i64::MAX]).is_some());
    for wrong in [&[][..], &[0], &[i64::MIN, i64::MIN], &[i64::MIN, 7, 7], &[i64::MIN, 9, 7]] {
        assert!(ranges(wrong).is_none(), "{wrong:?}");
    }
    assert!(ranges(&[i64::MIN, 1, 2, 3, 4]).is_none(), "there are {MOST_RANGES} at most");
}

/// A block that another range's secret has sealed is not a second name of an ID.
#[test]
fn an_id_has_one_name() {
    let from = [i64::MIN, 0, 1_000];
    let ranges = ranges(&from).unwrap();
    for (id, of) in [(i64::MIN, 0), (-1, 0), (0, 1), (999, 1), (1_000, 2), (i64::MAX, 2)] {
        for number in 0..from.len() {
            let sealed = Cipher::new(&[number as u8; 16]).seal(id);
            assert_eq!(ranges.open(sealed), (number == of).then_some(id), "{id} by {number}");
            assert_eq!(ranges.seal(id) == sealed, number == of, "{id} by {number}");
        }
    }
}

#[test]
fn a_range_shows_a_fingerprint_of_its_secret_and_is_read_from_it() {
    let range = Range::new(-5, &SECRET);
    assert_eq!(range.to_string(), format!("aes128-uuid8 -5 {}", fingerprint(&SECRET)));
    assert_eq!(Range::read(&range.to_string()), Some(range));
    assert_ne!(fingerprint(&SECRET), fingerprint(b"b secret of test"));
    for text in
        ["", "aes128-uuid8", "aes256-uuid8 0 00", "aes128-uuid8 x 00", "aes128-uuid8 0 00 ", "aes128-uuid8 +1 00"]
    {
        assert_eq!(Range::read(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn sealed_ids_open(secret: [u8; 16], id: i64, name in "[a-z]([a-z_]{0,20}[a-z])?") {
        let cipher = Cipher::new(&secret);
        let sealed = cipher.seal(id);
        prop_assert!(is_marked(sealed));
        prop_assert_eq!(read(&name, write(&name, sealed).as_bytes()), Some(sealed));
        prop_assert_eq!(cipher.open(sealed), Some(id));
    }

    #[test]
    fn blocks_that_were_not_sealed_do_not_open(secret: [u8; 16], block: u128) {
        prop_assert_eq!(Cipher::new(&secret).open(block & !(0xf << 76 | 3 << 62) | 8 << 76 | 2 << 62), None);
    }
}
