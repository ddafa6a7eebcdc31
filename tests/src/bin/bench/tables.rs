//! Tables of documents: a complete run writes its rows to a JSON file, and from that file the tables of the README and
//! of the benchmarks page. A table follows a comment with the names of its rows.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::titles::title;

const JSON: &str = "docs/src/benchmarks.json";
const DOCUMENTS: &[&str] = &["README.md", "docs/src/benchmarks.md"];
const BEGIN: &str = "<!-- benchmarks: ";
const END: &str = " -->";
const HEADER: &str = "| benchmark | unit | gateway | peer | ratio | target |\n|---|---|---|---|---|---|\n";

/// Stores the rows of a complete run, and renews the tables.
pub(crate) fn write(rows: &str) -> Result<()> {
    let root = root();
    let mut files = vec![(JSON, rows.to_owned())];
    for document in DOCUMENTS {
        let text = fs::read_to_string(root.join(document)).with_context(|| format!("read {document}"))?;
        files.push((document, renewed(&text, &parse(rows)?).with_context(|| (*document).to_owned())?));
    }
    for (file, text) in files {
        fs::write(root.join(file), text).with_context(|| format!("write {file}"))?;
    }
    Ok(())
}

/// Root of the repository, which this program was built from.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn parse(json: &str) -> Result<Vec<Value>> {
    serde_json::from_str(json).with_context(|| format!("parse {JSON}"))
}

/// Returns a document with its tables made from these rows.
fn renewed(text: &str, rows: &[Value]) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        out.push_str(line);
        let Some(names) = line.trim_end().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END)) else {
            continue;
        };
        out.push('\n');
        while lines.next_if(|line| line.trim().is_empty() || line.starts_with('|')).is_some() {}
        out.push_str(HEADER);
        for name in names.split(", ") {
            let mut found = rows.iter().filter(|row| row["bench"] == name).peekable();
            if found.peek().is_none() {
                let Some(title) = title(name) else { bail!("no row is called {name}") };
                writeln!(out, "| {title} | | not measured | | | |")?;
            }
            for row in found {
                out.push_str(&cells(row).with_context(|| format!("row {name}"))?);
            }
        }
        if lines.peek().is_some() {
            out.push('\n');
        }
    }
    Ok(out)
}

fn cells(row: &Value) -> Result<String> {
    let text = |name: &str| row[name].as_str().with_context(|| format!("no {name}"));
    let number = |name: &str| row[name].as_f64().with_context(|| format!("no {name}"));
    let mut line = String::new();
    writeln!(
        line,
        "| {} | {} | {} | {} ({}) | {} | {} |",
        text("title")?,
        text("unit")?,
        figure(number("ours")?),
        figure(number("peer")?),
        text("peer_name")?,
        figure(number("ratio")?),
        text("target")?.replace(">=", "≥").replace("<=", "≤"),
    )?;
    Ok(line)
}

/// Writes a number with three significant digits, and thousands apart.
fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        _ => 3,
    };
    let value = if value.abs() >= 1000.0 {
        let magnitude = 10f64.powf(value.abs().log10().floor() - 2.0);
        (value / magnitude).round() * magnitude
    } else {
        value
    };
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 && whole.len() > 3 {
            out.push(' ');
        }
        out.push(digit);
    }
    if !rest.is_empty() {
        out.push('.');
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_have_three_digits() {
        for (value, text) in [
            (0.0213, "0.021"),
            (0.444, "0.44"),
            (2.689, "2.69"),
            (21.04, "21.0"),
            (797.2, "797"),
            (4524.0, "4 520"),
            (33_949.0, "33 900"),
            (1_234_567.0, "1 230 000"),
        ] {
            assert_eq!(figure(value), text);
        }
    }

    fn rows() -> Vec<Value> {
        let row = |bench, ours: f64, target| {
            json!({"bench": bench, "title": format!("the {bench}"), "unit": "ms", "ours": ours, "peer": 2.0,
                "peer_name": "other", "ratio": ours / 2.0, "target": target})
        };
        vec![row("a", 1.0, "ratio <= 0.6"), row("b", 3.0, "ratio >= 2"), row("b", 5.0, "ours < 6 ms")]
    }

    #[test]
    fn a_table_is_replaced_and_the_text_around_it_is_kept() {
        let text = "# T\n\nBefore:\n\n<!-- benchmarks: b, a -->\n\n| old |\n|---|\n| 1 |\n\nAfter.\n";
        let want = format!(
            "# T\n\nBefore:\n\n<!-- benchmarks: b, a -->\n\n{HEADER}\
             | the b | ms | 3.00 | 2.00 (other) | 1.50 | ratio ≥ 2 |\n\
             | the b | ms | 5.00 | 2.00 (other) | 2.50 | ours < 6 ms |\n\
             | the a | ms | 1.00 | 2.00 (other) | 0.50 | ratio ≤ 0.6 |\n\nAfter.\n"
        );
        assert_eq!(renewed(text, &rows()).unwrap(), want);
        assert_eq!(renewed(&want, &rows()).unwrap(), want);
        let without = "<!-- benchmarks: a -->\n";
        assert!(renewed(without, &rows()).unwrap().ends_with("| ratio ≤ 0.6 |\n"));
        assert!(renewed("<!-- benchmarks: a, c -->\n", &rows()).is_err());
        let absent = renewed("<!-- benchmarks: apply_10k -->\n", &rows()).unwrap();
        assert!(absent.ends_with("| | not measured | | | |\n"), "{absent}");
    }

    #[test]
    fn each_document_has_tables_of_known_rows() {
        for document in DOCUMENTS {
            let text = fs::read_to_string(root().join(document)).unwrap();
            assert!(text.contains(BEGIN), "{document} has no table");
            let table = renewed(&text, &[]).unwrap();
            assert!(table.contains("| not measured |"), "{document}");
        }
    }

    #[test]
    fn documents_show_the_rows_of_the_last_run() {
        let json = fs::read_to_string(root().join(JSON)).unwrap();
        let rows: Vec<Value> = serde_json::from_str(&json).unwrap();
        for document in DOCUMENTS {
            let text = fs::read_to_string(root().join(document)).unwrap();
            assert!(
                renewed(&text, &rows).unwrap() == text,
                "the tables of {document} are not those of {JSON}"
            );
        }
    }
}
