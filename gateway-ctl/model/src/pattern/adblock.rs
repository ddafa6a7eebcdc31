//! Rules for host names in Adblock syntax, as far as a resolver can apply them.
//!
//! `||example.com^` the name and all below it, `|example.com^` this name only, `example.com` the same as the first,
//! `/expression/`, `*` as a wildcard, `@@` before all of it for an exception, and after `$` the modifiers
//! `important`, `dnstype`, `client` and `denyallow`. Paths, page elements and options of browsers are refused: a
//! resolver sees none of them.

use std::fmt;

use regex::bytes::Regex;

use super::{matches_wildcard, regex, wildcard};
use crate::domain::DomainName;
use crate::kinds::dns_filter_rule::QueryType;

/// Names that a rule matches.
#[derive(Clone, Debug)]
pub enum AdblockTarget {
    /// `||name^`
    Suffix(DomainName),
    /// `|name^`
    Exact(DomainName),
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
        if ["##", "#@#", "#?#", "#$#"].iter().any(|mark| text.contains(mark)) {
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
    let (exact, rest) = match (body.strip_prefix("||"), body.strip_prefix('|')) {
        (Some(rest), _) => (false, rest),
        (None, Some(rest)) => (true, rest),
        (None, None) => (false, body),
    };
    let name = rest.strip_suffix('|').unwrap_or(rest);
    let name = name.strip_suffix('^').unwrap_or(name);
    if name.contains('/') {
        return Err("Paths are for browsers; a resolver sees only names.".to_owned());
    }
    if name.contains('*') {
        return wildcard(name).map(if exact {
            AdblockTarget::Wildcard
        } else {
            AdblockTarget::SuffixWildcard
        });
    }
    let name = DomainName::parse(name).map_err(|error| format!("Not a rule for a name: {error}."))?;
    Ok(if exact { AdblockTarget::Exact(name) } else { AdblockTarget::Suffix(name) })
}

impl fmt::Display for AdblockRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.exception {
            f.write_str("@@")?;
        }
        match &self.target {
            AdblockTarget::Suffix(name) => write!(f, "||{name}^")?,
            AdblockTarget::Exact(name) => write!(f, "|{name}^")?,
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
