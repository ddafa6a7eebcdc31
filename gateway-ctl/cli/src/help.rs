//! Texts of the help and the manual that are not clap's: output, endpoints, examples, exit codes.

use crate::failure::EXIT_CODES;
use crate::grammar::{Command, Group, Kind, Operand, ParameterKind, Prints};
use crate::{address, client};

pub(crate) const ABOUT: &str = "Command-line client of the network gateway";

/// Returns the environment variables, with their descriptions.
pub(crate) fn environment() -> [(&'static str, String); 3] {
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

/// Returns the values that an operand takes, if its name does not say so.
pub(crate) fn operand(operand: &Operand) -> Option<&'static str> {
    Some(match operand.what {
        ParameterKind::Json => {
            "JSON in quotes, a file, or - for standard input, which is also read if it is left out"
        }
        ParameterKind::File => "A file; not standard input",
        ParameterKind::Object("/devices") if operand.name == "device" => {
            "Id, MAC address, or name if it is unique"
        }
        ParameterKind::Object("/snapshots") => "Name of a snapshot",
        ParameterKind::Object("/diagnostics/captures") => "Id of a capture",
        ParameterKind::Object(_) => "Id, or name if it is unique",
        ParameterKind::Word(_) | ParameterKind::Text => return None,
    })
}

/// Returns a description of standard output.
pub(crate) fn prints(command: &Command) -> String {
    match command.prints {
        Prints::Json => "JSON".to_owned(),
        Prints::Table(columns) | Prints::TableOf(_, columns) => {
            columns.iter().map(|column| column.heading).collect::<Vec<_>>().join(" ")
        }
        Prints::Fields => "FIELD VALUE".to_owned(),
        Prints::LeakMatrix => {
            "POLICY and one column a state, with via:NAME, blocked, direct, or DIRECT for a leak".to_owned()
        }
        Prints::Text => "Text".to_owned(),
    }
}

/// Returns the text below the options of the program: the kinds by their groups, environment and exit codes.
pub(crate) fn overview(table: &[Kind]) -> String {
    let width = table.iter().map(|kind| kind.name.len()).max().unwrap_or(0);
    let kinds = Group::ALL.map(|group| {
        let kinds = table.iter().filter(|kind| kind.group == group);
        section(group.title(), kinds.map(|kind| format!("{:width$}  {}", kind.name, kind.about)))
    });
    let environment = environment();
    let environment = environment.iter().map(|(name, about)| (*name, about.as_str()));
    format!(
        "{}\nLists are tables with tabs between the columns, single objects are JSON.\n\
         gateway-ctl <kind> --help tells its verbs.\n\n{}\n{}",
        kinds.join("\n"),
        rows("Environment", environment),
        exit_codes()
    )
}

/// Returns the text below the verbs of a kind: the output of its default command, and examples.
pub(crate) fn of_kind(kind: &Kind) -> String {
    let examples = kind.commands.iter().filter_map(|command| command.examples.first()).take(3);
    let default = kind.default_command().map(output).unwrap_or_default();
    format!(
        "{default}{}\n{}\ngateway-ctl {} <verb> --help tells more.",
        section("Examples", examples.map(|line| example(line))),
        exit_codes(),
        kind.name
    )
}

/// Returns the text below the arguments of a command.
pub(crate) fn of_command(command: &Command) -> String {
    let examples = command.examples.iter().map(|line| example(line));
    format!("{}{}\n{}", output(command), section("Examples", examples), exit_codes())
}

fn output(command: &Command) -> String {
    let mut text = format!("{}\n", section("Prints", [prints(command)]));
    if !command.calls.is_empty() {
        text.push_str(&format!("{}\n", section("Calls", calls(command))));
    }
    text
}

/// Returns the endpoints that a command calls, such as `POST /api/v1/devices`.
pub(crate) fn calls(command: &Command) -> impl Iterator<Item = String> {
    command.calls.iter().map(|call| format!("{} /api/v1{}", call.method.as_str(), call.path))
}

pub(crate) fn example(line: &str) -> String {
    format!("gateway-ctl {line}")
}

fn exit_codes() -> String {
    let codes: Vec<(String, &str)> =
        EXIT_CODES.iter().map(|(code, about)| (code.to_string(), *about)).collect();
    rows("Exit codes", codes.iter().map(|(code, about)| (code.as_str(), *about)))
}

fn rows<'a>(title: &str, rows: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> String {
    let width = rows.clone().map(|(name, _)| name.len()).max().unwrap_or(0);
    section(title, rows.map(|(name, about)| format!("{name:width$}  {about}")))
}

fn section(title: &str, lines: impl IntoIterator<Item = String>) -> String {
    let lines: String = lines.into_iter().map(|line| format!("  {line}\n")).collect();
    format!("{title}:\n{lines}")
}
