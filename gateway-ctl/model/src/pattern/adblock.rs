//! Rules for host names in Adblock syntax, as far as a resolver can apply them.
//!
//! `||example.com^` the name and all below it, `|example.com^` and `://example.com^` this name only, `.example.com^` the
//! names below it, `-ads.example.com^` all names that end so, `||example.` all names with a part that begins so, `/` in
//! place of the last `^`, `/expression/`, `*` as a wildcard, `@@` before all of it for an exception, and after `$` the
//! modifiers `important`, `dnstype`, `client` and `denyallow`. A name alone is the same as the first form. Paths, ports,
//! page elements and options of browsers are refused: a resolver sees none of them.
//!
//! The documentation of AdGuard decides what a rule means: a third of the rules with patterns of its DNS filter did
//! nothing or something else. A pattern matches `http://name/` where it begins with `||` or a scheme, and the name
//! alone elsewhere; `^` is its end. A name alone stays shorthand for the domain with its subdomains, also in lists,
//! because most lists of names mean that. A property test compares the compiled rules with the expression of the
//! syntax.

use std::fmt;

use regex::bytes::Regex;

use super::expression::{matches_wildcard, regex, wildcard};
use crate::domain::DomainName;
use crate::query_type::QueryType;

/// Names that a rule matches.
#[derive(Clone, Debug)]
pub enum AdblockTarget {
    /// `||name^`
    Suffix(DomainName),
    /// `|name^`
    Exact(DomainName),
    /// `.name^`
    Below(DomainName),
    /// `||wild*card^`
    SuffixWildcard(String),
    /// `|wild*card^`
    Wildcard(String),
    /// `/expression/`
    Regex(Regex),
}

/// One rule.
#[derive(Clone, Debug)]
pub struct AdblockRule {
    /// `@@`: it allows instead of blocking.
    pub exception: bool,
    pub target: AdblockTarget,
    /// It wins over exceptions without this.
    pub important: bool,
    /// Only queries of these types; of any if empty.
    pub types: Vec<QueryType>,
    /// All types but these.
    pub not_types: Vec<QueryType>,
    /// Only queries of these clients: addresses, networks or names; `~` before one excludes it.
    pub clients: Vec<String>,
    /// Excludes these names and those below them.
    pub deny_allow: Vec<DomainName>,
}

impl AdblockRule {
    pub(super) fn parse(text: &str) -> Result<AdblockRule, String> {
        let text = text.trim();
        if text.starts_with('!') || text.starts_with('#') {
            return Err("This is a comment, not a rule.".to_owned());
        }
        if is_for_browsers(text) {
            return Err(
                "Rules for elements of pages are for browsers; a resolver sees only names.".to_owned()
            );
        }
        let (exception, text) = text.strip_prefix("@@").map_or((false, text), |rest| (true, rest));
        let (body, modifiers) = split(text);
        let mut rule = AdblockRule {
            exception,
            target: target(body)?,
            important: false,
            types: Vec::new(),
            not_types: Vec::new(),
            clients: Vec::new(),
            deny_allow: Vec::new(),
        };
        if let Some(modifiers) = modifiers {
            rule.modify(modifiers)?;
        }
        Ok(rule)
    }

    fn modify(&mut self, modifiers: &str) -> Result<(), String> {
        let mut seen = Vec::new();
        for modifier in modifiers.split(',') {
            let (name, value) = modifier.split_once('=').unwrap_or((modifier, ""));
            if seen.contains(&name) {
                return Err(format!("The modifier {name} is given twice."));
            }
            seen.push(name);
            let values = || value.split('|').map(str::trim);
            if value.is_empty() != (name == "important") {
                return Err(format!("{modifier:?} is not known: {KNOWN}"));
            }
            match name {
                "important" => self.important = true,
                "dnstype" => {
                    for value in values() {
                        let (list, value) = match value.strip_prefix('~') {
                            Some(rest) => (&mut self.not_types, rest),
                            None => (&mut self.types, value),
                        };
                        list.push(value.parse().map_err(|_| format!("{value:?} is no type of a query."))?);
                    }
                }
                "client" => {
                    for value in values() {
                        let bare = value.strip_prefix('~').unwrap_or(value);
                        if bare.is_empty()
                            || !bare.chars().all(|c| c.is_alphanumeric() || "-_.:/ ".contains(c))
                        {
                            return Err(format!("{value:?} is no client: an address, a network or a name."));
                        }
                        self.clients.push(value.to_owned());
                    }
                }
                "denyallow" => {
                    for value in values() {
                        let name = DomainName::parse(value);
                        self.deny_allow
                            .push(name.map_err(|error| format!("{value:?} in denyallow: {error}."))?);
                    }
                }
                _ => return Err(format!("{modifier:?} is not known: {KNOWN}")),
            }
        }
        Ok(())
    }

    pub(super) fn matches(&self, asked: &DomainName) -> bool {
        let text = asked.as_str();
        let found = match &self.target {
            AdblockTarget::Suffix(name) => asked.is_within(name),
            AdblockTarget::Exact(name) => name == asked,
            AdblockTarget::Below(name) => name != asked && asked.is_within(name),
            AdblockTarget::Wildcard(pattern) => matches_wildcard(pattern.as_bytes(), text.as_bytes()),
            AdblockTarget::SuffixWildcard(pattern) => {
                let starts = std::iter::once(0).chain(text.match_indices('.').map(|(at, _)| at + 1));
                starts
                    .into_iter()
                    .any(|start| matches_wildcard(pattern.as_bytes(), &text.as_bytes()[start..]))
            }
            AdblockTarget::Regex(regex) => regex.is_match(text.as_bytes()),
        };
        found && !self.deny_allow.iter().any(|name| asked.is_within(name))
    }
}

const KNOWN: &str =
    "a resolver knows important, dnstype=A|~AAAA, client=192.0.2.1|name and denyallow=name|name.";

/// The pattern and its modifiers. A `$` inside of an expression is none of them.
fn split(text: &str) -> (&str, Option<&str>) {
    let from = if text.starts_with('/') { text.rfind('/').unwrap_or_default() } else { 0 };
    match text[from..].find('$') {
        Some(at) => (&text[..from + at], Some(&text[from + at + 1..])),
        None => (text, None),
    }
}

fn target(body: &str) -> Result<AdblockTarget, String> {
    if let Some(expression) = body.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
        if expression.is_empty() {
            return Err("The regular expression is empty.".to_owned());
        }
        return regex(expression).map(AdblockTarget::Regex);
    }
    let (start, rest) = Start::of(body);
    let (name, is_closed) = end_of(rest, start)?;
    if name.contains(':') {
        return Err("Ports are for browsers; a resolver sees only names.".to_owned());
    }
    if name.is_empty() || name == "." {
        return Err("Not a rule for a name: it is empty.".to_owned());
    }
    if name.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return Err("Parts of addresses are for browsers; a resolver sees only names.".to_owned());
    }
    let whole = |name| DomainName::parse(name).map_err(|error| format!("Not a rule for a name: {error}."));
    if start == Start::Anywhere && !is_closed && !name.contains('*') && !name.starts_with('.') {
        return whole(name).map(AdblockTarget::Suffix);
    }
    if is_closed && !name.contains('*') {
        match (start, name.strip_prefix('.')) {
            (Start::Label, _) => return whole(name).map(AdblockTarget::Suffix),
            (Start::Name, _) => return whole(name).map(AdblockTarget::Exact),
            (Start::Anywhere, Some(name)) => return whole(name).map(AdblockTarget::Below),
            (Start::Anywhere, None) => {}
        }
    }
    let before = if start == Start::Anywhere { "*" } else { "" };
    let mut pattern = format!("{before}{name}{}", if is_closed { "" } else { "*" });
    while pattern.contains("**") {
        pattern = pattern.replace("**", "*");
    }
    match pattern.strip_prefix("*.").filter(|name| !name.contains('*')) {
        Some(name) => whole(name).map(AdblockTarget::Below),
        None if start == Start::Label => wildcard(&pattern).map(AdblockTarget::SuffixWildcard),
        None => wildcard(&pattern).map(AdblockTarget::Wildcard),
    }
}

/// Beginning of the text that a pattern matches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// `||`: the beginning of any label.
    Label,
    /// `|`, or a scheme: the beginning of the name.
    Name,
    Anywhere,
}

impl Start {
    /// Splits a pattern behind its beginning.
    fn of(body: &str) -> (Start, &str) {
        if let Some(rest) = body.strip_prefix("||") {
            return (Start::Label, rest);
        }
        let bare = body.strip_prefix('|');
        let schemes = ["http://", "https://", "ws://", "wss://", "://", "//"];
        let behind_scheme = schemes.iter().find_map(|scheme| bare.unwrap_or(body).strip_prefix(scheme));
        match behind_scheme.or(bare) {
            Some(rest) => (Start::Name, rest),
            None => (Start::Anywhere, body),
        }
    }
}

/// Splits off the end of a pattern. Returns the name, and whether a match ends with it: by `^`, by the `/` behind the
/// name of a URL, or by `|`.
fn end_of(rest: &str, start: Start) -> Result<(&str, bool), String> {
    let Some(at) = rest.find(['^', '/']) else {
        return Ok(rest.strip_suffix('|').map_or((rest, false), |name| (name, true)));
    };
    let (name, mut behind) = (&rest[..at], &rest[at..]);
    if start == Start::Anywhere && behind.starts_with('/') {
        return Err(PATHS.to_owned());
    }
    behind = behind[1..].trim_end_matches('*');
    match behind.is_empty() || behind == "|" {
        true => Ok((name, true)),
        false => Err(PATHS.to_owned()),
    }
}

const PATHS: &str = "Paths are for browsers; a resolver sees only names.";

/// Reports whether a rule is for elements, scripts or texts of pages: it has a mark such as `##`, `#@#` or `#%#`.
fn is_for_browsers(text: &str) -> bool {
    text.match_indices('#').any(|(at, _)| {
        let marks = text[at + 1..].trim_start_matches(['@', '?', '$', '%']);
        marks.starts_with('#') && text[at + 1..].len() - marks.len() <= 3
    })
}

impl fmt::Display for AdblockRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.exception {
            f.write_str("@@")?;
        }
        match &self.target {
            AdblockTarget::Suffix(name) => write!(f, "||{name}^")?,
            AdblockTarget::Exact(name) => write!(f, "|{name}^")?,
            AdblockTarget::Below(name) => write!(f, ".{name}^")?,
            AdblockTarget::SuffixWildcard(text) => write!(f, "||{text}^")?,
            AdblockTarget::Wildcard(text) => write!(f, "|{text}^")?,
            AdblockTarget::Regex(regex) => write!(f, "/{regex}/")?,
        }
        let types = self.types.iter().map(ToString::to_string);
        let types: Vec<String> = types.chain(self.not_types.iter().map(|t| format!("~{t}"))).collect();
        let names: Vec<&str> = self.deny_allow.iter().map(DomainName::as_str).collect();
        let lists = [
            ("dnstype", types.join("|")),
            ("client", self.clients.join("|")),
            ("denyallow", names.join("|")),
        ];
        let mut modifiers: Vec<String> =
            if self.important { vec!["important".to_owned()] } else { Vec::new() };
        modifiers.extend(
            lists.iter().filter(|(_, list)| !list.is_empty()).map(|(name, list)| format!("{name}={list}")),
        );
        if modifiers.is_empty() { Ok(()) } else { write!(f, "${}", modifiers.join(",")) }
    }
}
