//! Standard output: data only. Warnings and hints go to standard error.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use crate::failure::Failure;
use crate::grammar::{Command, Kind, Prints};
use crate::tabular::{self, Style};
use crate::{client::Answer, escape};

/// Prints a response in the format of its command.
pub(crate) fn print(kind: &Kind, command: &Command, answer: &Answer) -> Result<(), Failure> {
    let style = style();
    let text = match command.prints {
        Prints::Json => json(&answer.data),
        Prints::Table(columns) => tabular::table(columns, &answer.data, style),
        Prints::TableOf(field, columns) => tabular::table(columns, &answer.data[field], style),
        Prints::Fields => tabular::fields(&answer.data, style),
        Prints::LeakMatrix => tabular::leak_matrix(&answer.data, style),
        Prints::Text => answer.data.as_str().unwrap_or_default().to_owned(),
    };
    write(&text)?;
    for (path, message) in &answer.warnings {
        let place = if path.is_empty() { String::new() } else { format!("{}: ", escape::text(path)) };
        warn(&format!("warning: {place}{}", escape::text(message)));
    }
    if let Some(hint) = partial_hint(answer) {
        warn(&hint);
    }
    if let (Prints::Table(_), true, true) = (command.prints, style.aligned, is_empty_list(&answer.data)) {
        warn(&empty_hint(kind));
    }
    if let Some(remark) = command.remark {
        warn(remark);
    }
    Ok(())
}

/// Returns a hint if the gateway has more objects than the response.
fn partial_hint(answer: &Answer) -> Option<String> {
    let (shown, total) = (answer.data.as_array()?.len(), answer.total?);
    (shown < total)
        .then(|| format!("{shown} of {total}: the others are at the API, with ?limit= and ?before=."))
}

fn empty_hint(kind: &Kind) -> String {
    match kind.command("create") {
        Some(_) => format!("There are none. gateway-ctl {} create --help tells how to make one.", kind.name),
        None => "There are none.".to_owned(),
    }
}

fn is_empty_list(data: &Value) -> bool {
    data.as_array().is_some_and(Vec::is_empty)
}

/// Formats JSON with two spaces a level, and one newline at the end.
pub(crate) fn json(data: &Value) -> String {
    let text = serde_json::to_string_pretty(data).unwrap_or_default();
    format!("{}\n", escape::json(&text))
}

/// Writes to standard output. A closed pipe ends the command without an error message.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Closed,
        _ => Failure::Other(format!("standard output cannot be written: {error}")),
    })
}

/// Writes one line to standard error. If it is closed, the line is lost.
pub(crate) fn warn(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

fn style() -> Style {
    let terminal = io::stdout().is_terminal();
    Style { aligned: terminal, coloured: terminal && wants_colour(|name| std::env::var_os(name)) }
}

/// Returns whether the output has colours: by the conventions of no-color.org and of dumb terminals.
fn wants_colour(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> bool {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    set("NO_COLOR").is_none() && set("TERM").is_some_and(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn partial_lists_are_reported() {
        let hint = |total| partial_hint(&Answer { data: json!([1, 2]), warnings: Vec::new(), total });
        assert!(hint(Some(120)).is_some_and(|text| text.starts_with("2 of 120")));
        assert_eq!((hint(Some(2)), hint(None)), (None, None));
    }

    #[test]
    fn json_is_indented_by_two_and_ends_its_line() {
        assert_eq!(super::json(&json!({"a": [1]})), "{\n  \"a\": [\n    1\n  ]\n}\n");
    }

    #[test]
    fn colour_is_only_for_terminals_that_want_it() {
        let with = |pairs: &'static [(&str, &str)]| {
            wants_colour(move |name| {
                pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into())
            })
        };
        assert!(with(&[("TERM", "xterm")]));
        assert!(with(&[("TERM", "xterm"), ("NO_COLOR", "")]));
        assert!(!with(&[("TERM", "xterm"), ("NO_COLOR", "1")]));
        assert!(!with(&[("TERM", "dumb")]));
        assert!(!with(&[]));
    }
}
