//! Manual pages: gateway-ctl(1) from the command line, gateway.yaml(5) from the commented example of the configuration.

pub(crate) mod settings;

use roff::{Roff, bold, roman};

use crate::command_line;
use crate::failure::EXIT_CODES;
use crate::grammar::{Command, Group, Kind};
use crate::help;

const DESCRIPTION: [&str; 3] = [
    "A client of the gateway's REST API and nothing else. Without a verb, a kind shows its list or its status. Lists \
     are tables: one header, one object a line, tabs between the columns; new columns are added at the end. On a \
     terminal the columns are aligned. An empty cell is a dash; a tab, a newline, a backslash and control bytes inside \
     a value appear as \\t, \\n, \\\\ and \\xNN. Single objects are JSON. Standard output carries data only; \
     warnings and errors go to standard error, and on failure standard output is empty.",
    "An object is named by its id, or by its name where that is unique. A JSON body is given in quotes, as a file, or \
     by standard input (- or nothing); it is checked before it is sent, and mistakes have a line and a column. After \
     -- an argument may begin with a dash.",
    "The client carries no credential. With auth enabled in the gateway it can only read, and only from the networks \
     of auth.local_net.",
];

/// Returns gateway-ctl(1).
pub(crate) fn client(table: &[Kind]) -> String {
    let mut program = command_line::program(table);
    program.build();
    let mut page = Roff::new();
    push_head(&mut page, ["GATEWAY-CTL", "1", "General Commands Manual"]);
    page.text([roman(format!("gateway-ctl - {}", help::ABOUT))])
        .control("SH", ["SYNOPSIS"])
        .text([bold("gateway-ctl <kind> [verb] [argument...]")])
        .control("br", [])
        .text([bold("gateway-ctl help [kind [verb]]")])
        .control("SH", ["DESCRIPTION"]);
    for paragraph in DESCRIPTION {
        page.control("PP", []).text([roman(paragraph)]);
    }
    for group in Group::ALL {
        page.control("SH", [group.title().to_uppercase().as_str()]);
        for kind in table.iter().filter(|kind| kind.group == group) {
            let Some(parent) = program.find_subcommand_mut(kind.name) else { continue };
            for command in &kind.commands {
                match parent.find_subcommand_mut(command.verb) {
                    Some(verb) => push_command(&mut page, verb, command),
                    None => push_command(&mut page, parent, command),
                }
            }
        }
    }
    page.control("SH", ["EXIT STATUS"]);
    for (code, about) in EXIT_CODES {
        push_entry(&mut page, &code.to_string()).text([roman(*about)]);
    }
    page.control("SH", ["ENVIRONMENT"]);
    for (name, about) in help::environment() {
        push_entry(&mut page, name).text([roman(about)]);
    }
    page.control("SH", ["SEE ALSO"]).text([roman("gatewayd(8), gateway.yaml(5)")]);
    page.render()
}

fn push_command(page: &mut Roff, parsed: &mut clap::Command, command: &Command) {
    let usage = parsed.render_usage().to_string();
    // Below the usage of a kind is that of its verbs.
    let usage = usage.lines().next().unwrap_or_default().trim_start_matches("Usage: gateway-ctl ");
    push_entry(page, usage).text([roman(format!("{}.", command.about))]);
    let arguments = parsed.get_arguments().filter(|argument| argument.get_id() != "help");
    for argument in arguments {
        if let Some(text) = argument.get_help() {
            page.control("br", []).text([bold(argument.to_string()), roman(format!(": {text}."))]);
        }
    }
    page.control("br", []).text([roman(format!("Prints: {}.", help::prints(command)))]);
    let calls: Vec<String> = help::calls(command).collect();
    if !calls.is_empty() {
        page.control("br", []).text([roman(format!("Calls: {}.", calls.join(", ")))]);
    }
    push_verbatim(page, command.examples.iter().map(|line| help::example(line)));
}

/// Adds the title of a page and the beginning of its first section.
fn push_head(page: &mut Roff, [name, section, volume]: [&str; 3]) {
    const SOURCE: &str = concat!("gateway ", env!("CARGO_PKG_VERSION"));
    // An empty date has to be quoted, else the source would take its place.
    page.control("TH", [name, section, "\"\"", SOURCE, volume]).control("SH", ["NAME"]);
}

/// Adds a term; its description follows.
fn push_entry<'a>(page: &'a mut Roff, term: &str) -> &'a mut Roff {
    page.control("TP", []).text([bold(term)])
}

/// Adds lines as they are, indented.
fn push_verbatim(page: &mut Roff, lines: impl Iterator<Item = String>) {
    page.control("RS", []).control("nf", []);
    for line in lines {
        page.text([roman(line)]);
    }
    page.control("fi", []).control("RE", []);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::table;

    #[test]
    fn the_page_of_the_client_has_every_command() {
        let table = table();
        let page = client(&table);
        for kind in &table {
            for command in &kind.commands {
                let usage = format!("\n\\fB{} {}", kind.name, command.verb).replace('-', "\\-");
                assert!(page.contains(usage.trim_end()), "{usage}");
                for example in &command.examples {
                    let example = example.replace('\\', "\\\\").replace('-', "\\-").replace('\'', "\\*(Aq");
                    assert!(page.contains(&example), "{example}");
                }
            }
        }
        assert!(page.contains(".TH GATEWAY-CTL 1 \"\" \"gateway "), "{}", &page[..200]);
    }

    #[test]
    fn no_line_of_a_page_is_taken_for_a_request_by_accident() {
        for (name, page) in [("gateway-ctl.1", client(&table())), ("gateway.yaml.5", settings::page())] {
            for line in page.lines().filter(|line| line.starts_with(['.', '\''])) {
                let request = line[1..].split(' ').next().unwrap();
                let known = ["TH", "SH", "SS", "PP", "TP", "br", "nf", "fi", "RS", "RE", "ie", "el"];
                assert!(known.contains(&request), "{name}: {line}");
            }
        }
    }
}
