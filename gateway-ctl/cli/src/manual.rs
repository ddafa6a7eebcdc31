//! Manual pages: gateway-ctl(1) from the table, gateway.yaml(5) from the commented example of the configuration.

mod roff;
mod settings;

use crate::commands::table;
use crate::failure::EXIT_CODES;
use crate::grammar::{Command, Group, Kind};
use crate::help;
use roff::Roff;

/// Manual page and its renderer.
#[derive(Debug)]
pub struct Page {
    /// Name of its file.
    pub file: &'static str,
    render: fn(&[Kind]) -> String,
}

pub const PAGES: &[Page] = &[
    Page { file: "gateway-ctl.1", render: client },
    Page { file: "gateway.yaml.5", render: |_| settings::page() },
];

pub fn page(file: &str) -> Option<&'static Page> {
    PAGES.iter().find(|page| page.file == file)
}

pub fn render(page: &Page, table: &[Kind]) -> String {
    (page.render)(table)
}

fn client(table: &[Kind]) -> String {
    let mut page = Roff::new("gateway-ctl", 1, "General Commands Manual");
    page.section("NAME").text("gateway-ctl - command-line client of the network gateway");
    page.section("SYNOPSIS")
        .bold_line("gateway-ctl <kind> [verb] [argument...]")
        .bold_line("gateway-ctl help [kind [verb]]");
    page.section("DESCRIPTION").text(
        "A client of the gateway's REST API and nothing else. Lists are tables: one header, one object a line, tabs \
         between the columns; new columns are added at the end. On a terminal the columns are aligned. ParameterKind is empty is \
         a dash; a tab, a newline, a backslash and control bytes inside a value appear as \\t, \\n, \\\\ and \\xNN. \
         Single objects are JSON. Standard output carries data only; warnings and errors go to standard error, and on \
         failure standard output is empty.",
    );
    page.paragraph(
        "An object is named by its id, or by its name where that is unique. A JSON body is given in quotes, as a file, \
         or by standard input (- or nothing); it is checked before it is sent, and mistakes have a line and a column. \
         After -- an argument may begin with a dash.",
    );
    page.paragraph(
        "The client carries no credential. With auth enabled in the gateway it can only read, and only from the \
         networks of auth.local_net.",
    );
    for group in Group::ALL {
        page.section(&group.title().to_uppercase());
        for kind in table.iter().filter(|kind| kind.group == group) {
            for command in &kind.commands {
                push_command(&mut page, kind, command);
            }
        }
    }
    page.section("EXIT STATUS");
    for (code, about) in EXIT_CODES {
        page.entry(&code.to_string()).text(about);
    }
    page.section("ENVIRONMENT");
    for (name, about) in help::environment() {
        page.entry(name).text(&about);
    }
    page.section("SEE ALSO").text("gatewayd(8), gateway.yaml(5)");
    page.finish()
}

fn push_command(page: &mut Roff, kind: &Kind, command: &Command) {
    page.entry(&help::usage(kind, command));
    page.text(&format!("{}.", command.about));
    for operand in &command.operands {
        if let Some(text) = help::operand_text(operand) {
            page.line_break().text(&format!("{}: {text}.", operand.name));
        }
    }
    for flag in command.flags {
        page.line_break().text(&format!("--{}: {}.", flag.name, flag.about));
    }
    page.line_break().text(&format!("Prints: {}.", help::prints(command)));
    let calls = help::calls(command);
    if !calls.is_empty() {
        page.line_break().text(&format!("Calls: {}.", calls.join(", ")));
    }
    page.example(&command.examples.iter().map(|line| help::example(line)).collect::<Vec<_>>());
}

/// Returns all pages with their file names, for tests and packages.
pub fn all() -> Vec<(&'static str, String)> {
    let table = table();
    PAGES.iter().map(|page| (page.file, render(page, &table))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_client_has_every_command() {
        let table = table();
        let page = client(&table);
        for kind in &table {
            for command in &kind.commands {
                let usage = roff::escaped(&help::usage(kind, command));
                assert!(page.contains(&usage), "{usage}");
            }
        }
        assert!(page.starts_with(".TH GATEWAY\\-CTL 1"), "{}", &page[..60]);
    }

    #[test]
    fn no_line_of_a_page_is_taken_for_a_request_by_accident() {
        for (file, page) in all() {
            for line in page.lines().filter(|line| line.starts_with(['.', '\''])) {
                let request = line[1..].split(' ').next().unwrap();
                let known = ["TH", "SH", "SS", "PP", "TP", "B", "br", "nf", "fi", "RS", "RE"];
                assert!(known.contains(&request), "{file}: {line}");
            }
        }
    }
}
