//! Tables of listed names: lookups, replacement of lists, memory.

use std::collections::BTreeMap;

use gateway_model::domain::DomainName;
use proptest::prelude::*;

use super::*;
use crate::dns::name::Name;

const KEY: Key = Key::new(0x5eed);

fn name(text: &str) -> Name {
    Name::from(&DomainName::parse(text).expect("a name"))
}

fn names(entries: &[(&str, Form, Effect)]) -> Names {
    let mut collect = NameCollector::new(KEY);
    entries.iter().for_each(|(text, form, effect)| collect.add(name(text).as_ref(), *form, *effect));
    collect.finish()
}

fn found(table: &Table, asked: &str) -> Vec<(u16, String, Effect)> {
    let (asked, mut hits) = (name(asked), Vec::new());
    table.find(asked.as_ref(), |hit| hits.push((hit.tag.0, hit.name.to_string(), hit.effect)));
    hits
}

fn tag(number: u16) -> Tag {
    Tag::new(number).expect("a tag")
}

#[test]
fn every_list_that_has_the_name_or_one_above_it_is_found() {
    let mut table = Table::new(KEY);
    table.put(
        tag(1),
        &names(&[("ads.example", Form::Both, Effect::Block), ("exact.example", Form::Itself, Effect::Block)]),
    );
    table.put(
        tag(Tag::LAST),
        &names(&[
            ("ads.example", Form::Below, Effect::Nxdomain),
            ("www.ads.example", Form::Both, Effect::Allow),
        ]),
    );
    assert_eq!(found(&table, "ads.example"), [(1, "ads.example".to_owned(), Effect::Block)]);
    assert_eq!(
        found(&table, "www.ads.example"),
        [
            (4095, "www.ads.example".to_owned(), Effect::Allow),
            (1, "ads.example".to_owned(), Effect::Block),
            (4095, "ads.example".to_owned(), Effect::Nxdomain),
        ]
    );
    assert_eq!(found(&table, "exact.example").len(), 1);
    assert_eq!(found(&table, "www.exact.example"), []);
    assert_eq!(found(&table, "example"), []);
    assert_eq!(table.len(), 4);
}

#[test]
fn a_name_given_with_both_forms_is_one_entry() {
    let both =
        names(&[("a.example", Form::Below, Effect::Block), ("a.example", Form::Itself, Effect::Block)]);
    assert_eq!(both.words, names(&[("a.example", Form::Both, Effect::Block)]).words);
}

#[test]
fn readers_of_the_previous_table_keep_reading_it() {
    let mut table = Table::new(KEY);
    table.put(tag(1), &names(&[("a.example", Form::Both, Effect::Block)]));
    let before = table.clone();
    table.put(tag(1), &names(&[("b.example", Form::Both, Effect::Block)]));
    assert_eq!((found(&before, "a.example").len(), found(&before, "b.example").len()), (1, 0));
    assert_eq!((found(&table, "a.example").len(), found(&table, "b.example").len()), (0, 1));
    table.take(tag(1));
    assert!(table.is_empty() && found(&table, "b.example").is_empty());
}

#[test]
fn a_table_takes_less_than_twelve_bytes_a_name() {
    let mut collect = NameCollector::new(KEY);
    for number in 0..200_000u32 {
        let label = number.to_be_bytes().map(|byte| [b'a' + (byte >> 4), b'a' + (byte & 15)]).concat();
        let wire = [&[8][..], &label, b"\x07example\0"].concat();
        collect.add(NameRef::new(&wire).expect("a name"), Form::Both, Effect::Block);
    }
    let names = collect.finish();
    let mut table = Table::new(KEY);
    let empty = table.memory();
    table.put(tag(1), &names);
    assert_eq!(names.len(), 200_000);
    let used = table.memory() - empty;
    assert!(used < 200_000 * 12, "{used} bytes");
}

proptest! {
    #[test]
    fn prefetch_takes_any_bytes(
        names in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..90),
                "([ab]{1,2}\\.){0,90}".prop_map(|text| text.replace('.', "\u{1}").into_bytes()),
            ],
            0..40,
        ),
    ) {
        let mut table = Table::new(KEY);
        table.prefetch(names.iter().map(Vec::as_slice));
        table.put(tag(1), &self::names(&[("a.b", Form::Both, Effect::Block)]));
        table.prefetch(names.iter().map(Vec::as_slice));
    }

    /// Compares puts and takes of lists in any order with plain maps.
    #[test]
    fn lookup_agrees_with_a_map_of_names(
        edits in prop::collection::vec(
            (1u16..5, prop::collection::vec(("[ab](\\.[ab]){0,4}", 1u8..4, 0u64..7), 0..30)),
            1..8,
        ),
        asked in prop::collection::vec("[abc](\\.[ab]){0,5}", 1..30),
    ) {
        let mut table = Table::new(KEY);
        let mut plain: BTreeMap<u16, BTreeMap<(String, Effect), u8>> = BTreeMap::new();
        for (list, entries) in &edits {
            let mut collect = NameCollector::new(KEY);
            let kept = plain.entry(*list).or_default();
            kept.clear();
            for (text, form, effect) in entries {
                let (form, effect) = (Form::of(u64::from(*form)), Effect::of(*effect));
                collect.add(name(text).as_ref(), form, effect);
                *kept.entry((text.clone(), effect)).or_default() |= form as u8;
            }
            table.put(tag(*list), &collect.finish());
        }
        prop_assert_eq!(table.len(), plain.values().map(BTreeMap::len).sum::<usize>());
        for asked in &asked {
            let mut want = Vec::new();
            for (list, entries) in &plain {
                for ((text, effect), form) in entries {
                    let itself = text == asked;
                    let below = asked.ends_with(&format!(".{text}"));
                    if (itself && form & 1 != 0) || (below && form & 2 != 0) {
                        want.push((*list, text.clone(), *effect));
                    }
                }
            }
            let mut have = found(&table, asked);
            have.sort();
            want.sort();
            prop_assert_eq!(have, want);
        }
    }
}
