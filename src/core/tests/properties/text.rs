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
}
