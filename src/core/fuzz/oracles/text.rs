//! Text forms. An accepted text is the ID's own text, apart from case and look-alikes. A refused text has an error that names its
//! first wrong character.

use std::sync::LazyLock;

use flake_core::{BUILTIN, Definition, Error, Layout, TextFault, TextForm};

/// The built-in layouts, and layouts of each form with many bits and with few.
static LAYOUTS: LazyLock<Vec<Layout>> = LazyLock::new(|| {
    let likes = [r#""like": "twitter""#, r#""like": "si""#, r#""like": "cockroach""#, FEW];
    let forms = likes.into_iter().flat_map(|like| TextForm::ALL.map(|form| of_form(like, form)));
    BUILTIN.iter().cloned().chain(forms).collect()
});

const FEW: &str =
    r#""epoch": "2024-01-01T00:00:00Z", "tick": "1s", "fields": [{"name": "t", "bits": 7, "role": "timestamp"}]"#;

fn of_form(like: &str, form: TextForm) -> Layout {
    let model = Definition::from_json("fuzz", &format!("{{{like}}}")).unwrap();
    Definition { text: Some(form), ..model }.layout("fuzz").unwrap()
}

/// Checks any text.
pub fn text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for layout in LAYOUTS.iter() {
        match layout.parse(text) {
            Ok(id) => {
                let written = layout.encode(id).unwrap();
                assert_eq!(written, normal(layout.text, text));
                assert_eq!(layout.parse(&written), Ok(id));
                layout.explain(id).unwrap();
            }
            Err(Error::MalformedText { fault, text: shown, .. }) => {
                assert!(text.starts_with(&shown));
                is_at_fault(layout, text, fault);
            }
            Err(Error::ImpossibleId { id, .. }) => assert!(layout.tick_of(id as u64).is_err()),
            Err(other) => panic!("{other:?}"),
        }
    }
}

/// Returns the text as the form writes it.
fn normal(form: TextForm, text: &str) -> String {
    match form {
        TextForm::Hex => text.to_ascii_lowercase(),
        TextForm::Base36 => text.to_ascii_uppercase(),
        TextForm::Crockford32 => text.to_ascii_uppercase().replace('O', "0").replace(['I', 'L'], "1"),
        _ => text.to_owned(),
    }
}

fn is_at_fault(layout: &Layout, text: &str, fault: TextFault) {
    let before = |position: usize| text.chars().take(position - 1).collect::<String>();
    let is_later = |found: Result<u64, Error>| match found {
        Err(Error::MalformedText { fault, .. }) => matches!(fault, TextFault::Length { .. } | TextFault::LeadingZero),
        _ => true,
    };
    match fault {
        TextFault::Length { found, expected } => {
            assert_eq!(found, text.chars().count());
            assert_ne!(found, expected);
        }
        TextFault::Character { character, position } => {
            assert_eq!(text.chars().nth(position - 1), Some(character));
            assert!(is_later(layout.parse(&before(position))));
        }
        TextFault::TooLarge { position } => assert!(is_later(layout.parse(&before(position)))),
        TextFault::LeadingZero => assert!(text.starts_with('0') && text.len() > 1),
    }
}
