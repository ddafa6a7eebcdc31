//! `cargo xtask vendors`: renews the list of vendors of MAC addresses, which the daemon embeds.
//!
//! The source is the public listing of the IEEE Registration Authority, of which the IEEE asserts no copyright, in the form
//! of the npm package `oui-data` (BSD-2-Clause): a JSON object of prefixes in hexadecimal digits with the organisation
//! and its address. Only the first line is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use flate2::{Compression, GzBuilder};

use crate::paths;

/// Prefixes that the listing has at least. Fewer are a damaged file.
const MIN_PREFIXES: usize = 40_000;
/// Legal forms at the end of a name, which say nothing about the device.
const LEGAL_FORMS: &[&str] = &[
    "inc",
    "incorporated",
    "ltd",
    "limited",
    "co",
    "corp",
    "corporation",
    "company",
    "gmbh",
    "llc",
    "srl",
    "sa",
    "spa",
    "as",
    "aps",
    "ab",
    "oy",
    "bv",
    "kg",
    "ag",
    "pty",
    "pte",
    "plc",
    "sas",
    "kk",
    "lp",
    "llp",
    "sdn",
    "bhd",
];

#[derive(clap::Args)]
pub(crate) struct Options {
    /// `index.json` of the npm package oui-data
    file: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let text = std::fs::read_to_string(&options.file)
        .with_context(|| format!("cannot read {}", options.file.display()))?;
    let listing: BTreeMap<String, String> = serde_json::from_str(&text)?;
    ensure!(listing.len() >= MIN_PREFIXES, "only {} prefixes: the listing is not complete", listing.len());
    let mut vendors: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (prefix, organisation) in &listing {
        let is_prefix = prefix.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_lowercase());
        ensure!(
            is_prefix && matches!(prefix.len(), 6 | 7 | 9),
            "{prefix:?} is no prefix of 24, 28 or 36 bits"
        );
        vendors.entry(name(organisation)).or_default().insert(prefix);
    }
    let mut lines = String::new();
    for (vendor, prefixes) in &vendors {
        let prefixes: Vec<&str> = prefixes.iter().copied().collect();
        lines.push_str(&format!("{vendor}\t{}\n", prefixes.join(" ")));
    }
    let path = paths::vendors();
    // Without a time, so that the same listing gives the same file.
    let mut file = GzBuilder::new().mtime(0).write(std::fs::File::create(&path)?, Compression::best());
    file.write_all(lines.as_bytes())?;
    file.finish()?;
    println!("vendors: {} prefixes of {} vendors in {}", listing.len(), vendors.len(), path.display());
    Ok(())
}

/// Returns the name of an organisation in one line, without its legal form.
fn name(organisation: &str) -> String {
    let line = organisation.lines().next().unwrap_or_default();
    let mut words: Vec<&str> = line.split_whitespace().collect();
    while words.len() > 1 && is_legal_form(words[words.len() - 1]) {
        words.pop();
    }
    let name = words.join(" ");
    name.trim_end_matches([',', '.', '&', '-', ' ']).replace('\t', " ")
}

fn is_legal_form(word: &str) -> bool {
    let word: String = word.chars().filter(char::is_ascii_alphanumeric).collect();
    word.is_empty() || LEGAL_FORMS.contains(&word.to_ascii_lowercase().as_str()) || {
        // Co.,Ltd without a space.
        let lower = word.to_ascii_lowercase();
        matches!(lower.as_str(), "coltd" | "coinc" | "colimited" | "colimitedltd")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_legal_form_and_no_address() {
        let cases = [
            ("Apple, Inc.\n1 Infinite Loop\nUnited States", "Apple"),
            ("SAMSUNG ELECTRO-MECHANICS CO., LTD.\nSuwon", "SAMSUNG ELECTRO-MECHANICS"),
            ("HUAWEI TECHNOLOGIES CO.,LTD", "HUAWEI TECHNOLOGIES"),
            ("Raspberry Pi (Trading) Ltd", "Raspberry Pi (Trading)"),
            ("Co", "Co"),
        ];
        for (organisation, expected) in cases {
            assert_eq!(name(organisation), expected);
        }
    }
}
