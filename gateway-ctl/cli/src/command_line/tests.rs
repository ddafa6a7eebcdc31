//! Tests of the command line that clap makes of the table.

use std::ffi::OsString;

use super::*;
use crate::commands;

fn parsed<'a>(table: &'a [Kind], words: &[&str]) -> Result<Invocation<'a>, Failure> {
    parse(table, ["gateway-ctl"].iter().chain(words).map(OsString::from))
}

/// Returns the command with its arguments, or the text that the user reads.
fn asked(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
    match parsed(&commands::table(), &words) {
        Ok(Invocation::Run(kind, command, arguments)) => {
            let operands = command.operands.iter().map(|operand| operand.name);
            let names = operands.chain(command.flags.iter().map(|flag| flag.name));
            let given = names.flat_map(|name| {
                values(&arguments, name).into_iter().map(move |value| format!(" {name}={value}"))
            });
            format!("{} {}{}", kind.name, command.verb, given.collect::<String>()).trim().to_owned()
        }
        Ok(Invocation::Text(text)) => text,
        Ok(other) => format!("{other:?}"),
        Err(failure) => {
            assert_eq!(failure.exit_code(), 2);
            failure.text()
        }
    }
}

#[test]
fn clap_accepts_the_definition() {
    program(&commands::table()).debug_assert();
}

/// Returns the words of each command in a pipe, as a shell splits them, up to a redirection.
fn pipe(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![vec![String::new()]];
    let (mut is_quoted, mut is_redirected) = (false, false);
    for letter in line.chars() {
        let words = commands.last_mut().expect("a command");
        match letter {
            '\'' => is_quoted = !is_quoted,
            '|' if !is_quoted => {
                commands.push(vec![String::new()]);
                is_redirected = false;
            }
            '<' | '>' if !is_quoted => is_redirected = true,
            _ if is_redirected => {}
            ' ' if !is_quoted => words.push(String::new()),
            letter => words.last_mut().expect("a word").push(letter),
        }
    }
    commands.iter_mut().for_each(|words| words.retain(|word| !word.is_empty()));
    commands
}

#[test]
fn every_command_parses_its_own_examples() {
    let table = commands::table();
    for kind in &table {
        for command in &kind.commands {
            for example in &command.examples {
                let commands = pipe(&help::example(example));
                let own = commands.iter().filter(|words| words[0] == "gateway-ctl");
                let found = own.map(|words| match parse(&table, words.iter().map(OsString::from)) {
                    Ok(Invocation::Run(kind, command, _)) => (kind.name, command.verb),
                    other => panic!("{example}: {other:?}"),
                });
                let found: Vec<_> = found.collect();
                assert!(found.contains(&(kind.name, command.verb)), "{example}: {found:?}");
            }
        }
    }
}

#[test]
fn the_verb_may_be_left_out() {
    assert_eq!(asked("devices"), "devices list");
    assert_eq!(asked("device_groups"), "device-groups list");
    assert_eq!(asked("device_groups get a"), "device-groups get id=a");
    assert_eq!(asked("audit list"), "audit list");
    assert_eq!(asked("dns"), "dns status");
    assert_eq!(asked("enforce"), "enforce");
    assert_eq!(asked("enforce reconcile"), "enforce reconcile");
    assert_eq!(asked("capture"), "capture list");
    assert_eq!(asked("evaluate laptop"), "evaluate  device=laptop");
    assert_eq!(asked("status --"), "status");
}

#[test]
fn a_backup_is_not_printed_by_accident() {
    let text = asked("backup");
    assert!(text.contains("export, import, status, run"), "{text}");
}

#[test]
fn operands_and_flags_find_their_names() {
    assert_eq!(asked("devices update 7 {}"), "devices update id=7 json={}");
    assert_eq!(asked("dns block a b c"), "dns block domain=a domain=b domain=c");
    assert_eq!(asked("capture start --count=5 --iface eth1"), "capture start iface=eth1 count=5");
    assert_eq!(asked("capture start --iface eth1 --filter -x"), "capture start iface=eth1 filter=-x");
    assert_eq!(asked("ai query -- --why"), "ai query text=--why");
    assert_eq!(asked("apply -"), "apply  file=-");
    assert_eq!(asked("devices create -"), "devices create json=-");
}

#[test]
fn mistakes_say_what_would_be_right() {
    for (line, text) in [
        ("devcies", "a similar subcommand exists: 'devices'"),
        ("devices creat {}", "a similar subcommand exists: 'create'"),
        ("devices get", "Usage: gateway-ctl devices get <id>"),
        ("devices create {\"a\": 1}", "quote the JSON"),
        ("ai query why not", "quote the text"),
        ("status now", "unexpected argument 'now'"),
        ("capture start --ifcae x", "a similar argument exists: '--iface'"),
        ("capture start", "--iface <interface>"),
        ("capture start --iface", "a value is required for '--iface <interface>'"),
        ("capture start --iface=", "a value is required for '--iface <interface>'"),
        ("capture start --iface a --iface b", "cannot be used multiple times"),
        ("capture start --iface a --count many", "whole number"),
        ("federation sync", "--peer <url>"),
        ("devices create --name x", "as JSON, not as options"),
        ("completion tcsh", "bash, zsh, fish"),
        ("", "requires a subcommand"),
        ("--json status", "unexpected argument '--json'"),
        ("help devcies", "'devices'"),
    ] {
        let got = asked(line);
        assert!(got.starts_with("error: ") && got.contains(text), "{line}:\n{got}");
    }
    let table = commands::table();
    let empty = parsed(&table, &["devices", "get", ""]).unwrap_err().text();
    assert!(empty.contains("a value is required for '<id>'"), "{empty}");
    let hostile = parsed(&table, &["devices", "get", "a", "\u{1b}[2J"]).unwrap_err().text();
    assert!(!hostile.contains('\u{1b}'), "{hostile:?}");
}

#[test]
fn kinds_without_a_command_point_elsewhere() {
    assert!(asked("policies list").contains("/api/v1/routing/policies"));
    assert!(asked("polices").contains("/api/v1/routing/policies"));
    assert!(asked("routing_policies").contains("/api/v1/routing/policies"));
    assert!(asked("bridges").contains("gateway-ctl apply plan.json"));
    assert!(asked("tunnels create {}").contains("/api/v1/tunnels"));
    assert!(asked("exceptions update 1 {}").contains("delete the exception and create another"));
}

#[test]
fn help_is_there_at_every_level() {
    let overview = asked("--help");
    assert_eq!(asked("-h"), overview);
    for kind in commands::table() {
        let row = format!("\n  {:16}  {}\n", kind.name, kind.about);
        assert!(overview.contains(&row), "{row}{overview}");
    }
    assert!(overview.contains("GATEWAY_ADDR") && overview.contains("Exit codes:"), "{overview}");
    assert_eq!(asked("help"), overview);
    assert_eq!(asked("help devices create --help"), asked("devices create --help"));
    assert_eq!(asked("help device_groups"), asked("device-groups --help"));
    assert!(asked("devices create x -h").contains("Usage: gateway-ctl devices create [json]"));
    let update = asked("help devices update");
    for part in [
        "Usage: gateway-ctl devices update <id> [json]",
        "<id>    Id, or name if it is unique",
        "Prints:\n  JSON",
        "PUT /api/v1/devices/{id}",
        "Examples:\n  gateway-ctl devices update",
        "130  ended by Ctrl-C",
    ] {
        assert!(update.contains(part), "{part} is missing:\n{update}");
    }
    let kind = asked("devices -h");
    assert!(kind.contains("ID NAME MAC HOSTNAME TRUST_CLASS PRIVACY_CLASS"), "{kind}");
    assert!(kind.contains("  create  Create an object"), "{kind}");
    assert!(kind.contains("  gateway-ctl devices update <id> [json]\n"), "{kind}");
}

#[test]
fn no_help_is_wider_than_a_wide_terminal() {
    for kind in commands::table() {
        let verbs = kind.commands.iter().map(|command| format!("help {} {}", kind.name, command.verb));
        for line in verbs.chain([format!("help {}", kind.name)]) {
            for line in asked(&line).lines() {
                assert!(line.chars().count() <= 140, "{line}");
            }
        }
    }
}
