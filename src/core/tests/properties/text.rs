//! The texts of IDs.

use flake_core::TextForm;
use proptest::prelude::*;

use crate::layouts::{any_layout, possible};

proptest! {
    #![proptest_config(crate::config())]

    #[test]
    fn parse_undoes_encode(layout in any_layout(), id: u64, other: u64) {
        let id = possible(&layout, id);
        let text = layout.encode(id).unwrap();
        prop_assert_eq!(layout.parse(&text), Ok(id));
        // Decimal texts have no fixed length, and the digits of base64url are not in the order of ASCII.
        let unordered = [TextForm::Decimal, TextForm::Base64url, TextForm::Base64urlReversed];
        let other = possible(&layout, other);
        if !unordered.contains(&layout.text) {
            prop_assert_eq!(text.cmp(&layout.encode(other).unwrap()), id.cmp(&other));
        }
    }

    #[test]
    fn no_text_panics(layout in any_layout(), text in "\\PC{0,30}") {
        if let Ok(id) = layout.parse(&text) {
            prop_assert_eq!(layout.parse(&layout.encode(id).unwrap()), Ok(id));
        }
    }

    #[test]
    fn every_possible_id_can_be_drawn_within_100_columns(layout in any_layout(), id: u64) {
        let id = possible(&layout, id);
        let drawn = layout.explain(id).unwrap();
        prop_assert!(drawn.lines().all(|line| line.len() <= 100), "{}", drawn);
    }
}
