//! Tests of the invariants of every entry in the command table.

use std::collections::BTreeSet;

use super::*;

fn commands() -> Vec<(Kind, Command)> {
    let pairs = |kind: Kind| kind.commands.clone().into_iter().map(move |command| (kind.clone(), command));
    table().into_iter().flat_map(pairs).collect()
}

#[test]
fn names_are_unique() {
    let mut seen = BTreeSet::new();
    for (kind, command) in commands() {
        assert!(seen.insert((kind.name, command.verb)), "{} {}", kind.name, command.verb);
    }
}

#[test]
fn no_kind_hides_a_pointer() {
    let kinds: BTreeSet<&str> = table().iter().map(|kind| kind.name).collect();
    for word in unavailable::words() {
        assert!(!kinds.contains(word), "{word} has a command and a pointer");
    }
}

#[test]
fn sentences_have_no_full_stop_of_their_own() {
    for (kind, command) in commands() {
        for about in [kind.about, command.about] {
            let first = about.chars().next().expect("a sentence");
            assert!(first.is_uppercase() && !about.ends_with('.'), "{} {}: {about}", kind.name, command.verb);
        }
    }
}

#[test]
fn every_placeholder_has_its_operand() {
    for (kind, command) in commands() {
        // The further calls of a command with work of its own have what the first one answered.
        let is_special = matches!(command.work, Work::Special(_));
        for call in command.calls.iter().take(if is_special { 1 } else { usize::MAX }) {
            for name in call.path.split('/').filter_map(|part| part.strip_prefix('{')) {
                let name = name.trim_end_matches('}');
                let is_known = command.operands.iter().any(|operand| operand.name == name);
                assert!(is_known, "{} {}: {{{name}}}", kind.name, command.verb);
            }
        }
    }
}

#[test]
fn the_first_call_is_what_is_sent() {
    for (kind, command) in commands() {
        let is_special = matches!(command.work, Work::Special(Special::Completion));
        assert_eq!(command.calls.is_empty(), is_special, "{} {}", kind.name, command.verb);
        if command.body().is_some() {
            let method = command.calls[0].method;
            assert!(matches!(method, Method::Post | Method::Put), "{} {}", kind.name, command.verb);
        }
    }
}

#[test]
fn examples_are_of_their_command() {
    for (kind, command) in commands() {
        assert_eq!(command.examples.len(), 2, "{} {} has two examples", kind.name, command.verb);
        for example in &command.examples {
            assert!(example.starts_with(kind.name), "{example}");
            let whole = format!("gateway-ctl {example} ");
            let is_default = kind.default_command().is_some_and(|default| default.verb == command.verb);
            let with_verb = format!("gateway-ctl {} {} ", kind.name, command.verb);
            assert!(is_default || whole.contains(&with_verb), "{example}");
        }
    }
}

#[test]
fn only_the_last_operand_may_be_left_out_or_repeated() {
    for (kind, command) in commands() {
        let before = command.operands.iter().rev().skip(1);
        for operand in before {
            assert_eq!(operand.arity, Arity::One, "{} {} {}", kind.name, command.verb, operand.name);
        }
    }
}
