//! Shell completions. The script contains kinds, verbs and options, and requests ids and names from `gateway-ctl
//! __complete`, which responds within half a second or not at all.

use std::fmt::Write;

use crate::grammar::{Arity, Command, Kind, ParameterKind};

pub const SHELLS: &[&str] = &["bash", "zsh", "fish"];

/// Returns the script for a shell in [`SHELLS`].
pub fn script(table: &[Kind], shell: &str) -> String {
    match shell {
        "zsh" => include_str!("completion/zsh.txt").replace("#TABLE#\n", &zsh(table)),
        "fish" => format!("{}{}", include_str!("completion/fish.txt"), fish(table)),
        _ => include_str!("completion/bash.txt").replace("#TABLE#\n", &bash(table)),
    }
}

/// Kind of the next word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Nothing,
    /// Id or name of an object, from `gateway-ctl __complete`.
    Object,
    File,
    Words(&'static [&'static str]),
}

impl Next {
    fn word(self) -> &'static str {
        match self {
            Next::Nothing | Next::Words(_) => "none",
            Next::Object => "object",
            Next::File => "file",
        }
    }
}

/// Returns the kind of each operand after the verb. A repeatable operand occurs once, at the end.
fn places(command: &Command) -> Vec<Next> {
    let next = |what| match what {
        ParameterKind::Object(_) => Next::Object,
        ParameterKind::Json | ParameterKind::File => Next::File,
        ParameterKind::Word(words) => Next::Words(words),
        ParameterKind::Text => Next::Nothing,
    };
    debug_assert!(command.operands.iter().rev().skip(1).all(|operand| operand.arity != Arity::Many));
    command.operands.iter().map(|operand| next(operand.what)).collect()
}

fn options(command: &Command) -> Vec<String> {
    command.flags.iter().map(|flag| format!("--{}", flag.name)).collect()
}

/// Calls `line` for each command, which becomes one line of a `case`. The arguments are the kind and verb, the words
/// that may follow, and the kinds of the operands.
fn cases(table: &[Kind], mut line: impl FnMut(&str, &str, &str)) {
    for kind in table {
        for command in &kind.commands {
            let of = format!("{} {}", kind.name, command.verb);
            let mut fixed: Vec<String> = options(command);
            for place in places(command) {
                if let Next::Words(words) = place {
                    fixed.extend(words.iter().map(|word| (*word).to_owned()));
                }
            }
            let places: Vec<&str> = places(command).into_iter().map(Next::word).collect();
            line(of.trim_end(), &fixed.join(" "), &places.join(" "));
        }
    }
}

fn bash(table: &[Kind]) -> String {
    let names = |names: Vec<&str>| names.join(" ");
    let mut text = format!("    local kinds='{}'\n", names(table.iter().map(|kind| kind.name).collect()));
    text.push_str("    case $kind in\n");
    for kind in table.iter().filter(|kind| !kind.verbs().is_empty()) {
        push(&mut text, &format!("    {}) verbs='{}' ;;", kind.name, kind.verbs().join(" ")));
    }
    text.push_str("    esac\n    [[ -n $verbs ]] || verb=''\n    case ${kind}${verb:+ $verb} in\n");
    cases(table, |of, fixed, places| {
        push(&mut text, &format!("    '{of}') fixed='{fixed}' places='{places}' ;;"));
    });
    text.push_str("    esac\n");
    text
}

fn zsh(table: &[Kind]) -> String {
    let described = |name: &str, about: &str| format!("'{name}:{}'", quoted(about));
    let mut text = String::from("    kinds=(\n");
    for kind in table {
        push(&mut text, &format!("        {}", described(kind.name, kind.about)));
    }
    text.push_str("    )\n    case $kind in\n");
    for kind in table.iter().filter(|kind| !kind.verbs().is_empty()) {
        let verbs: Vec<String> = kind
            .commands
            .iter()
            .filter(|command| !command.verb.is_empty())
            .map(|command| described(command.verb, command.about))
            .collect();
        push(&mut text, &format!("    {}) verbs=({}) ;;", kind.name, verbs.join(" ")));
    }
    text.push_str("    esac\n    ((${#verbs})) || verb=''\n    case ${kind}${verb:+ $verb} in\n");
    cases(table, |of, fixed, places| {
        push(&mut text, &format!("    '{of}') fixed=({fixed}) places=({places}) ;;"));
    });
    text.push_str("    esac\n");
    text
}

fn fish(table: &[Kind]) -> String {
    let mut text = String::new();
    for kind in table {
        let name = kind.name;
        push(
            &mut text,
            &format!(
                "complete -c gateway-ctl -n __gateway_ctl_needs_kind -a {name} -d '{}'",
                quoted(kind.about)
            ),
        );
        for command in &kind.commands {
            if !command.verb.is_empty() {
                push(
                    &mut text,
                    &format!(
                        "complete -c gateway-ctl -n '__gateway_ctl_needs_verb {name}' -a {} -d '{}'",
                        command.verb,
                        quoted(command.about)
                    ),
                );
            }
            let of = format!("{name} {}", command.verb);
            let of = of.trim_end();
            for (place, next) in places(command).into_iter().enumerate() {
                let words = match next {
                    Next::Nothing => continue,
                    Next::Object => format!("-a '(gateway-ctl __complete {of})'"),
                    Next::File => "-F".to_owned(),
                    Next::Words(words) => format!("-a '{}'", words.join(" ")),
                };
                push(
                    &mut text,
                    &format!("complete -c gateway-ctl -n '__gateway_ctl_at {place} {of}' {words}"),
                );
            }
            for flag in command.flags {
                push(
                    &mut text,
                    &format!(
                        "complete -c gateway-ctl -n '__gateway_ctl_in {of}' -x -l {} -d '{}'",
                        flag.name,
                        quoted(flag.about)
                    ),
                );
            }
        }
    }
    text
}

/// Escapes text for single quotes, and for zsh's colons, by removing quotes and replacing colons with commas.
fn quoted(text: &str) -> String {
    text.replace('\'', "").replace(':', ",")
}

fn push(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::table;

    #[test]
    fn every_shell_knows_every_kind_and_verb() {
        let table = table();
        for shell in SHELLS {
            let script = script(&table, shell);
            assert!(!script.contains("#TABLE#"));
            for kind in &table {
                assert!(script.contains(kind.name), "{shell}: {}", kind.name);
                for verb in kind.verbs() {
                    assert!(script.contains(verb), "{shell}: {} {verb}", kind.name);
                }
            }
            assert!(script.contains("__complete"), "{shell}");
        }
    }

    #[test]
    fn positions_are_completed() {
        let table = table();
        let devices = table.iter().find(|kind| kind.name == "devices").unwrap();
        assert_eq!(places(devices.command("update").unwrap()), [Next::Object, Next::File]);
        assert_eq!(places(devices.command("list").unwrap()), []);
    }
}
