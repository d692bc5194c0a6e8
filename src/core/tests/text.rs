//! Text forms: which texts are refused, and at which character.

use flake_core::{Error, Layout, TextFault, TextForm, built_in};

fn fault(layout: &Layout, text: &str) -> TextFault {
    match layout.parse(text) {
        Err(Error::MalformedText { fault, .. }) => fault,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn malformed_texts_are_refused_with_their_fault() {
    let [twitter, tsid, hex, base64id] =
        ["twitter", "tsid", "uniqueid", "base64id"].map(|name| built_in(name).unwrap());
    assert_eq!(fault(twitter, ""), TextFault::Length { found: 0, expected: 1 });
    assert_eq!(fault(twitter, "12x4"), TextFault::Character { character: 'x', position: 3 });
    assert_eq!(fault(twitter, "-1"), TextFault::Character { character: '-', position: 1 });
    assert_eq!(fault(twitter, " 1"), TextFault::Character { character: ' ', position: 1 });
    assert_eq!(fault(twitter, "007"), TextFault::LeadingZero);
    assert_eq!(fault(twitter, "18446744073709551616"), TextFault::TooLarge { position: 20 });
    assert_eq!(fault(twitter, &"9".repeat(1000)), TextFault::TooLarge { position: 20 });
    assert_eq!(fault(tsid, "G000000000000"), TextFault::TooLarge { position: 13 });
    assert_eq!(fault(tsid, "0AWE5HZP3SKTU"), TextFault::Character { character: 'U', position: 13 });
    assert_eq!(fault(tsid, "0AWE5HZP3SKT"), TextFault::Length { found: 12, expected: 13 });
    assert_eq!(fault(hex, "cb54ecf28400000"), TextFault::Length { found: 15, expected: 16 });
    assert_eq!(fault(hex, "cb54ecf2840000é0"), TextFault::Character { character: 'é', position: 15 });
    assert_eq!(fault(base64id, "AAAAAAAAA="), TextFault::Character { character: '=', position: 10 });
    assert_eq!(fault(base64id, "éAAAAAAAAA"), TextFault::Character { character: 'é', position: 1 });
    assert_eq!(fault(base64id, "AAAAAAAAAAA"), TextFault::Length { found: 11, expected: 10 });
}

#[test]
fn ids_that_a_layout_cannot_have_are_refused() {
    for (layout, text) in
        [("twitter", "9223372036854775808"), ("si", "9007199254740992"), ("uniqueid", "0000000000000400")]
    {
        let layout = built_in(layout).unwrap();
        assert!(matches!(layout.parse(text), Err(Error::ImpossibleId { .. })), "{text}");
        let id = u64::from_str_radix(text, if layout.text == TextForm::Hex { 16 } else { 10 }).unwrap();
        assert!(matches!(layout.encode(id), Err(Error::ImpossibleId { .. })), "{text}");
    }
}

#[test]
fn texts_may_differ_in_case_and_confusable_letters() {
    let tsid = built_in("tsid").unwrap();
    for text in ["0AWE5HZP3SKTK", "0awe5hzp3sktk", "OAWE5HZP3SKTK", "oawe5hzp3sktk"] {
        assert_eq!(tsid.parse(text), Ok(392311864492347219));
    }
    assert_eq!(tsid.parse("ILil000000000"), tsid.parse("1111000000000"));
    assert_eq!(built_in("uniqueid").unwrap().parse("CB54ECF284000000"), Ok(0xcb54ecf284000000));
}
