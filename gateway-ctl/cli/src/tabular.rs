//! Lists: one header, one object a line, separated by tabs.

use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::escape;
use crate::grammar::Column;

/// Placeholder for null, missing values and empty text.
const EMPTY: &str = "-";

/// Formatting of the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    /// Cells are padded before the tab.
    pub aligned: bool,
    /// State words are coloured.
    pub coloured: bool,
}

/// Returns a table. Every line ends with a newline.
pub(crate) fn table(columns: &[Column], data: &Value, style: Style) -> String {
    let mut rows = vec![columns.iter().map(|column| column.heading.to_owned()).collect::<Vec<_>>()];
    for object in data.as_array().map_or(&[][..], Vec::as_slice) {
        rows.push(columns.iter().map(|column| cell(&field(object, column.field))).collect());
    }
    lines(&rows, style)
}

/// Returns the fields of one object, one a line.
pub(crate) fn fields(data: &Value, style: Style) -> String {
    let mut rows = vec![vec!["FIELD".to_owned(), "VALUE".to_owned()]];
    for (name, value) in data.as_object().into_iter().flatten() {
        rows.push(vec![escape::cell(name), cell(value)]);
    }
    lines(&rows, style)
}

/// Returns the leak matrix: one line a policy, one column a state. The names of the states are in the grid. Hosts without a device
/// record have lines of their own behind the policies.
pub(crate) fn leak_matrix(data: &Value, style: Style) -> String {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let states: Vec<String> =
        list(&data["states"]).iter().filter_map(|state| state.as_str().map(str::to_owned)).collect();
    let mut heading = vec!["POLICY".to_owned()];
    heading.extend(states.iter().map(|state| escape::cell(&state.to_uppercase())));
    let mut rows = vec![heading];
    for row in list(&data["rows"]) {
        let mut line = vec![cell(&row["name"])];
        line.extend(states.iter().map(|state| outcome(&row["cells"][state])));
        rows.push(line);
    }
    for row in list(&data["unrecorded"]) {
        let by = if row["policy"].is_null() { &row["treatment"] } else { &row["policy"]["name"] };
        let mut line = vec![format!("{} without a record ({})", hosts(&row["hosts"]), cell(by))];
        line.extend(states.iter().map(|state| outcome(&row["cells"][state])));
        rows.push(line);
    }
    lines(&rows, style)
}

fn hosts(count: &Value) -> String {
    if *count == 1 { "1 host".to_owned() } else { format!("{} hosts", cell(count)) }
}

/// Returns `via:wg-a`, `blocked`, `direct` if that is intended, `DIRECT` if it is a leak.
fn outcome(of: &Value) -> String {
    if of["leak"] == Value::Bool(true) {
        return "DIRECT".to_owned();
    }
    match (of["outcome"].as_str(), of["via"].as_str()) {
        (Some("tunnel" | "next_hop"), Some(via)) => format!("via:{}", escape::cell(via)),
        (Some(outcome), _) => escape::cell(outcome),
        (None, _) => EMPTY.to_owned(),
    }
}

fn lines(rows: &[Vec<String>], style: Style) -> String {
    let count = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> =
        (0..count).map(|n| rows.iter().map(|row| row[n].width()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        for (n, cell) in row.iter().enumerate() {
            text.push_str(&paint(cell, style));
            if n + 1 < count {
                if style.aligned {
                    text.extend(std::iter::repeat_n(' ', widths[n].saturating_sub(cell.width())));
                }
                text.push('\t');
            }
        }
        text.push('\n');
    }
    text
}

fn paint(cell: &str, style: Style) -> String {
    let colour = match cell {
        "up" | "ok" | "active" | "healthy" | "approved" | "connected" | "resolved" => "32",
        "connecting" | "degraded" | "disconnecting" | "pending" | "acknowledged" | "warning" | "low" => "33",
        "down" | "error" | "failed" | "unreachable" | "rejected" | "revoked" | "critical" | "DIRECT" => "31",
        _ => return cell.to_owned(),
    };
    if style.coloured { format!("\u{1b}[{colour}m{cell}\u{1b}[0m") } else { cell.to_owned() }
}

/// Returns the value at `a.b`, `list.0` or `list.1..`.
fn field(object: &Value, path: &str) -> Value {
    let mut value = object;
    let mut rest = path;
    while !rest.is_empty() {
        let (step, after) = match rest.strip_suffix("..").filter(|rest| !rest.contains('.')) {
            Some(from) => {
                let from = from.parse().unwrap_or(usize::MAX);
                let list = value.as_array().and_then(|list| list.get(from..));
                return Value::Array(list.unwrap_or_default().to_vec());
            }
            None => rest.split_once('.').unwrap_or((rest, "")),
        };
        let next = match value {
            Value::Array(list) => step.parse::<usize>().ok().and_then(|index| list.get(index)),
            other => other.get(step),
        };
        match next {
            Some(next) => (value, rest) = (next, after),
            None => return Value::Null,
        }
    }
    value.clone()
}

/// Formats a value as a cell.
fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => escape::cell(text),
        Value::Array(list) => list.iter().map(part).collect::<Vec<_>>().join(","),
        Value::Object(fields) if fields.is_empty() => String::new(),
        other => escape::cell(&other.to_string()),
    };
    if text.is_empty() { EMPTY.to_owned() } else { text }
}

/// Formats an element of a list: a hop as `vpn:exit`, another object by its name.
fn part(value: &Value) -> String {
    let word = |name: &str| value.get(name).and_then(Value::as_str);
    match (value, word("type"), word("target"), word("name").or_else(|| word("kind"))) {
        (Value::String(text), ..) => escape::cell(text),
        (Value::Object(_), Some(kind), Some(target), _) => {
            format!("{}:{}", escape::cell(kind), escape::cell(target))
        }
        (Value::Object(_), _, _, Some(name)) => escape::cell(name),
        (other, ..) => escape::cell(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const COLUMNS: &[Column] =
        &[Column { heading: "NAME", field: "name" }, Column { heading: "STATUS", field: "status" }];

    #[test]
    fn an_empty_list_has_its_header() {
        assert_eq!(table(COLUMNS, &json!([]), Style::default()), "NAME\tSTATUS\n");
    }

    #[test]
    fn a_hostile_name_stays_one_cell() {
        let data = json!([{"name": "a\tb\n\u{1b}[2J\\", "status": null}, {"name": "", "status": "up"}]);
        let text = table(COLUMNS, &data, Style::default());
        assert_eq!(text, "NAME\tSTATUS\na\\tb\\n\\x1B[2J\\\\\t-\n-\tup\n");
    }

    #[test]
    fn on_a_terminal_columns_stand_under_one_another() {
        let data = json!([{"name": "客厅", "status": "up"}, {"name": "tv", "status": "down"}]);
        let text = table(COLUMNS, &data, Style { aligned: true, coloured: false });
        assert_eq!(text, "NAME\tSTATUS\n客厅\tup\ntv  \tdown\n");
        let text = table(COLUMNS, &data, Style { aligned: true, coloured: true });
        assert!(text.contains("tv  \t\u{1b}[31mdown\u{1b}[0m\n"), "{text:?}");
    }

    #[test]
    fn fields_are_found_in_lists_and_objects() {
        let object = json!({"policies": ["a", "b", "c"], "deep": {"er": 7}});
        assert_eq!(field(&object, "policies.0"), json!("a"));
        assert_eq!(cell(&field(&object, "policies.1..")), "b,c");
        assert_eq!(cell(&field(&object, "policies.9..")), "-");
        assert_eq!(field(&object, "deep.er"), json!(7));
        assert_eq!(field(&object, "deep.er.x"), Value::Null);
    }

    #[test]
    fn values_of_every_type_become_cells() {
        assert_eq!(cell(&json!(true)), "true");
        assert_eq!(cell(&json!(0.25)), "0.25");
        assert_eq!(cell(&json!({})), "-");
        assert_eq!(cell(&json!({"a": "b"})), "{\"a\":\"b\"}");
        assert_eq!(
            cell(&json!([{"type": "vpn", "target": "exit"}, {"type": "proxy", "target": "p"}])),
            "vpn:exit,proxy:p"
        );
        assert_eq!(cell(&json!([{"kind": "dns", "pull": true}, 7])), "dns,7");
    }

    #[test]
    fn a_leak_cries_out() {
        let cells = json!({
            "up": {"outcome": "tunnel", "via": "wg-a", "leak": false},
            "down": {"outcome": "direct", "via": "default", "leak": true},
            "boot": {"outcome": "blocked", "via": null, "leak": false},
        });
        let data = json!({"states": ["up", "down", "boot"], "rows": [{"name": "all", "cells": cells}]});
        assert_eq!(
            leak_matrix(&data, Style::default()),
            "POLICY\tUP\tDOWN\tBOOT\nall\tvia:wg-a\tDIRECT\tblocked\n"
        );
    }

    #[test]
    fn hosts_without_a_record_have_lines_of_their_own() {
        let cells = json!({"up": {"outcome": "direct", "via": "default", "leak": false}});
        let unrecorded = json!([
            {"treatment": "no_policy", "policy": null, "hosts": 2, "cells": cells},
            {"treatment": "through_policy", "policy": {"id": "x", "name": "rest"}, "hosts": 1, "cells": cells},
        ]);
        let data = json!({"states": ["up"], "rows": [], "unrecorded": unrecorded});
        assert_eq!(
            leak_matrix(&data, Style::default()),
            "POLICY\tUP\n2 hosts without a record (no_policy)\tdirect\n1 host without a record (rest)\tdirect\n"
        );
    }
}
