//! Help at every level, generated from the table.

use std::fmt::Write;

use crate::failure::EXIT_CODES;
use crate::grammar::{Arity, Command, Flag, Group, Kind, Operand, ParameterKind, Prints};
use crate::{address, client};

pub const ABOUT: &str = "Command-line client of the network gateway";

/// Returns the environment variables, with their descriptions.
pub fn environment() -> [(&'static str, String); 3] {
    [
        (
            address::VARIABLE,
            format!(
                "Where the gateway is: host:port, http://host:port or https://host:port [{}]",
                address::DEFAULT
            ),
        ),
        (
            client::CA_VARIABLE,
            "File of the certificates to trust for https, instead of the system's".to_owned(),
        ),
        ("NO_COLOR", "No colours, not even on a terminal".to_owned()),
    ]
}

/// Returns the synopsis, such as `gateway-ctl devices update <id> [json]`.
pub fn synopsis(kind: &Kind, command: &Command) -> String {
    format!("gateway-ctl {}", usage(kind, command))
}

/// Returns the synopsis without the name of the program. An optional verb is in brackets.
pub fn usage(kind: &Kind, command: &Command) -> String {
    let mut words = vec![kind.name.to_owned()];
    if !command.verb.is_empty() {
        let is_default = kind.default_command().is_some_and(|default| default.verb == command.verb);
        words.push(if is_default { format!("[{}]", command.verb) } else { command.verb.to_owned() });
    }
    words.extend(command.operands.iter().map(operand));
    words.extend(command.flags.iter().map(flag));
    words.join(" ")
}

fn operand(operand: &Operand) -> String {
    match operand.arity {
        Arity::One => format!("<{}>", operand.name),
        Arity::Optional => format!("[{}]", operand.name),
        Arity::Many => format!("<{}>...", operand.name),
    }
}

fn flag(flag: &Flag) -> String {
    let text = format!("--{} <{}>", flag.name, flag.value);
    if flag.required { text } else { format!("[{text}]") }
}

/// Returns the values that an operand takes, if its name does not say so.
pub fn operand_text(operand: &Operand) -> Option<String> {
    Some(match operand.what {
        ParameterKind::Json => {
            "JSON in quotes, a file, or - for standard input, which is also read if it is left out".to_owned()
        }
        ParameterKind::File => "A file; not standard input".to_owned(),
        ParameterKind::Object("/devices") if operand.name == "device" => {
            "Id, MAC address, or name if it is unique".to_owned()
        }
        ParameterKind::Object("/snapshots") => "Name of a snapshot".to_owned(),
        ParameterKind::Object("/diagnostics/captures") => "Id of a capture".to_owned(),
        ParameterKind::Object(_) => "Id, or name if it is unique".to_owned(),
        ParameterKind::Word(words) => words.join(", "),
        ParameterKind::Text => return None,
    })
}

/// Returns a description of standard output.
pub fn prints(command: &Command) -> String {
    match command.prints {
        Prints::Json => "JSON".to_owned(),
        Prints::Table(columns) => columns.iter().map(|column| column.heading).collect::<Vec<_>>().join(" "),
        Prints::Fields => "FIELD VALUE".to_owned(),
        Prints::LeakMatrix => {
            "POLICY and one column a state, with via:NAME, blocked, direct, or DIRECT for a leak".to_owned()
        }
        Prints::Text => "Text".to_owned(),
    }
}

/// Returns the endpoints that a command calls, such as `POST /api/v1/devices`.
pub fn calls(command: &Command) -> Vec<String> {
    command.calls.iter().map(|call| format!("{} /api/v1{}", call.method.as_str(), call.path)).collect()
}

pub fn overview(table: &[Kind]) -> String {
    let mut text = format!(
        "{ABOUT}\n\nUsage: gateway-ctl <kind> [verb] [argument...]\n       gateway-ctl help [kind [verb]]\n"
    );
    let width = table.iter().map(|kind| kind.name.len()).max().unwrap_or(0);
    for group in Group::ALL {
        push(&mut text, &format!("\n{}:", group.title()));
        for kind in table.iter().filter(|kind| kind.group == group) {
            push(&mut text, &format!("  {:width$}  {}", kind.name, kind.about));
        }
    }
    push(&mut text, "\nLists are tables with tabs between the columns, single objects are JSON.");
    push(&mut text, "gateway-ctl <kind> --help tells its verbs.");
    push_environment(&mut text);
    push_exit_codes(&mut text);
    text
}

/// Returns the help of a kind; if it has only one command, the help of that command.
pub fn kind(kind: &Kind) -> String {
    if let [only] = kind.commands.as_slice() {
        return command(kind, only);
    }
    let mut text = format!("{}\n\nUsage:\n", kind.about);
    let usages: Vec<String> = kind.commands.iter().map(|command| synopsis(kind, command)).collect();
    let width = usages.iter().map(String::len).max().unwrap_or(0);
    for (usage, command) in usages.iter().zip(&kind.commands) {
        push(&mut text, &format!("  {usage:width$}  {}", command.about));
    }
    if let Some(default) = kind.default_command() {
        push(&mut text, "");
        push_prints(&mut text, default);
        push_list(&mut text, "Calls", &calls(default));
    }
    let examples: Vec<String> = kind
        .commands
        .iter()
        .filter_map(|command| command.examples.first())
        .take(3)
        .map(|e| example(e))
        .collect();
    push_list(&mut text, "Examples", &examples);
    push_exit_codes(&mut text);
    push(&mut text, &format!("\ngateway-ctl {} <verb> --help tells more.", kind.name));
    text
}

pub fn command(kind: &Kind, command: &Command) -> String {
    let mut text = format!("{}\n\nUsage: {}\n", command.about, synopsis(kind, command));
    let mut rows: Vec<(String, String)> = Vec::new();
    for place in &command.operands {
        rows.extend(operand_text(place).map(|text| (operand(place), text)));
    }
    for option in command.flags {
        rows.push((format!("--{} <{}>", option.name, option.value), option.about.to_owned()));
    }
    if !rows.is_empty() {
        push(&mut text, "\nArguments:");
        push_rows(&mut text, &rows);
    }
    push(&mut text, "");
    push_prints(&mut text, command);
    push_list(&mut text, "Calls", &calls(command));
    let examples: Vec<String> = command.examples.iter().map(|line| example(line)).collect();
    push_list(&mut text, "Examples", &examples);
    push_exit_codes(&mut text);
    text
}

pub fn example(line: &str) -> String {
    format!("gateway-ctl {line}")
}

fn push_prints(text: &mut String, command: &Command) {
    push(text, &format!("Prints:\n  {}", prints(command)));
}

fn push_list(text: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    push(text, &format!("\n{title}:"));
    for line in lines {
        push(text, &format!("  {line}"));
    }
}

fn push_environment(text: &mut String) {
    push(text, "\nEnvironment:");
    push_rows(text, &environment().map(|(name, about)| (name.to_owned(), about)));
}

fn push_exit_codes(text: &mut String) {
    push(text, "\nExit codes:");
    push_rows(
        text,
        &EXIT_CODES.iter().map(|(code, about)| (code.to_string(), (*about).to_owned())).collect::<Vec<_>>(),
    );
}

fn push_rows(text: &mut String, rows: &[(String, String)]) {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, about) in rows {
        push(text, &format!("  {name:width$}  {about}"));
    }
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
    fn a_command_tells_all_that_is_in_its_row() {
        let table = table();
        let devices = table.iter().find(|kind| kind.name == "devices").unwrap();
        let text = command(devices, devices.command("update").unwrap());
        for part in [
            "Usage: gateway-ctl devices update <id> [json]",
            "<id>    Id, or name if it is unique",
            "Prints:\n  JSON",
            "PUT /api/v1/devices/{id}",
            "Examples:\n  gateway-ctl devices update",
            "130  ended by Ctrl-C",
        ] {
            assert!(text.contains(part), "{part} is missing:\n{text}");
        }
        let text = kind(devices);
        assert!(text.contains("gateway-ctl devices [list]  "), "{text}");
        assert!(text.contains("ID NAME MAC HOSTNAME TRUST_CLASS PRIVACY_CLASS"), "{text}");
    }

    #[test]
    fn the_overview_names_every_kind() {
        let table = table();
        let text = overview(&table);
        for kind in &table {
            assert!(text.contains(&format!("\n  {} ", kind.name)), "{}:\n{text}", kind.name);
        }
        assert!(text.contains("GATEWAY_ADDR"));
    }

    #[test]
    fn no_help_is_wider_than_a_wide_terminal() {
        for kind in table() {
            let texts = kind.commands.iter().map(|command| super::command(&kind, command));
            for text in texts.chain([super::kind(&kind)]) {
                for line in text.lines() {
                    assert!(line.chars().count() <= 140, "{line}");
                }
            }
        }
    }
}
