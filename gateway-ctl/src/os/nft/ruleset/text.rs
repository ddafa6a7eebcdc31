//! Writer of the table text, and sets in it.

use std::collections::BTreeSet;
use std::fmt::Write;

use gateway_core::plan::names as plan_names;

use super::super::error::Error;

/// Longest interface name of Linux.
const MAX_NAME: usize = 15;

/// Writer of the table text. nft 1.0.6 needs each brace on a line of its own.
pub(super) struct Text(String);

impl Text {
    pub(super) fn open() -> Self {
        Self(format!("table inet {} {{\n", plan_names::NFT_TABLE))
    }

    /// Adds a set that rules fill. Elements leave after a minute.
    pub(super) fn set(&mut self, name: &str, of: &str, size: u32) {
        self.line(1, format_args!("set {name} {{"));
        for line in [of, &format!("size {size}"), "flags dynamic,timeout", "timeout 1m"] {
            self.rule(line);
        }
        self.end();
    }

    pub(super) fn chain(&mut self, name: &str, base: &str) {
        self.line(1, format_args!("chain {name} {{"));
        if !base.is_empty() {
            self.rule(base);
        }
    }

    pub(super) fn rule(&mut self, rule: &str) {
        self.line(2, format_args!("{rule}"));
    }

    pub(super) fn end(&mut self) {
        self.line(1, format_args!("}}"));
    }

    pub(super) fn close(mut self) -> String {
        self.chain("fingerprint", "");
        self.end();
        self.line(0, format_args!("}}"));
        self.0
    }

    fn line(&mut self, depth: usize, text: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{}{text}", "\t".repeat(depth)).expect("writing to a string cannot fail");
    }
}

/// Returns a set of interface names, or `None` if there are none: nft has no empty set.
pub(super) fn names(names: &[String]) -> Result<Option<String>, Error> {
    match names.iter().find(|name| !is_plain(name)) {
        Some(name) => Err(Error::InterfaceName(name.clone())),
        None => Ok(set(names.iter().map(|name| format!("\"{name}\"")))),
    }
}

/// Reports whether a rule can hold the name: nft strings have no escapes, and a last `*` is a wildcard.
pub(super) fn is_plain(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'@' | b'+'))
}

/// Returns an anonymous set, or `None` without elements.
pub(super) fn set(items: impl Iterator<Item = String>) -> Option<String> {
    let items: BTreeSet<String> = items.collect();
    let items: Vec<String> = items.into_iter().collect();
    (!items.is_empty()).then(|| format!("{{ {} }}", items.join(", ")))
}
