//! A manual page of a program, generated from the `--help` output of the program and of its commands in order.

use std::{path::Path, process::Command};

use anyhow::{Context, Result};

use crate::process;

pub(super) fn of_help(program: &Path) -> Result<String> {
    let name = program.file_name().and_then(|name| name.to_str()).context("a program has a name")?;
    let help = |words: &[&str]| process::output(Command::new(program).args(words).arg("--help"));
    let whole = help(&[])?;
    let (about, rest) = whole.split_once('\n').unwrap_or((&whole, ""));
    let mut page = format!(
        ".TH {} 8 \"\" \"\" \"System Manager's Manual\"\n.SH NAME\n{} \\- {}\n.SH DESCRIPTION\n{}",
        escaped(&name.to_uppercase()),
        escaped(name),
        escaped(about.trim_end_matches('.')),
        preformatted(rest)
    );
    for command in commands(&whole) {
        page.push_str(&format!(
            ".SH {}\n{}",
            escaped(&command.to_uppercase()),
            preformatted(&help(&[command])?)
        ));
    }
    page.push_str(".SH SEE ALSO\ngateway\\-ctl(1), gateway.yaml(5)\n");
    Ok(page)
}

/// Returns the first words of the lines below `Commands:`, without the one that shows help.
fn commands(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| line.starts_with("  "));
    // The continuation of a wrapped description is indented further.
    let named = lines.filter(|line| !line.starts_with("   "));
    named.filter_map(|line| line.split_whitespace().next()).filter(|word| *word != "help").collect()
}

fn preformatted(text: &str) -> String {
    let lines = text.trim_matches('\n').lines().map(escaped);
    let lines = lines.map(|line| if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line });
    format!(".nf\n{}\n.fi\n", lines.collect::<Vec<_>>().join("\n"))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_in_the_help() {
        let help = "About.\n\nUsage: x\n\nCommands:\n  check-config  Read it\n                and more\n  help  Print\n\nOptions:\n  --config\n";
        assert_eq!(commands(help), ["check-config"]);
    }

    #[test]
    fn a_dot_at_the_beginning_stays_text() {
        assert_eq!(preformatted(".x -y\n"), ".nf\n\\&.x \\-y\n.fi\n");
    }
}
