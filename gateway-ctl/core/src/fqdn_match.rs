//! Policies that match the queried name of a client.

use std::collections::HashMap;

use gateway_model::domain::DomainName;
use gateway_model::kinds::policy_source::DomainPattern;
use regex::Regex;

use crate::dns::{Name, NameRef};
use crate::indexes::Rank;
use crate::plan::DomainRule;

/// Domains of all policies, indexed for lookups.
#[derive(Debug, Default)]
pub struct Domains {
    by_name: HashMap<Name, Vec<Entry>>,
    by_regex: Vec<(Regex, Entry)>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    rank: Rank,
    device: Option<u32>,
    matches_name: bool,
    matches_subdomains: bool,
}

impl Domains {
    pub fn new(rules: &[DomainRule]) -> Domains {
        let mut domains = Domains::default();
        for rule in rules {
            let (name, matches_name, matches_subdomains) = match &rule.pattern {
                DomainPattern::Suffix(name) => (name, true, true),
                DomainPattern::Exact(name) => (name, true, false),
                DomainPattern::Below(name) => (name, false, true),
                DomainPattern::Regex(expression) => (expression, true, true),
            };
            let entry = Entry { rank: rule.rank, device: rule.device, matches_name, matches_subdomains };
            if matches!(rule.pattern, DomainPattern::Regex(_)) {
                // Policies contain only valid expressions.
                domains.by_regex.extend(Regex::new(name).ok().map(|regex| (regex, entry)));
            } else if let Ok(name) = DomainName::parse(name) {
                domains.by_name.entry(Name::from(&name)).or_default().push(entry);
            }
        }
        domains
    }

    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty() && self.by_regex.is_empty()
    }

    /// Returns the rank of the first policy that matches the name for a device (0: no device).
    pub fn rank(&self, name: NameRef<'_>, device: u32) -> Option<Rank> {
        let mut rank: Option<Rank> = None;
        let mut take = |entry: &Entry| {
            if entry.device.is_none_or(|only| only == device) {
                rank = Some(rank.map_or(entry.rank, |best| best.min(entry.rank)));
            }
        };
        if !self.by_name.is_empty() {
            for (depth, suffix) in name.suffixes().enumerate() {
                let entries = self.by_name.get(suffix.wire()).into_iter().flatten();
                entries
                    .filter(|entry| if depth == 0 { entry.matches_name } else { entry.matches_subdomains })
                    .for_each(&mut take);
            }
        }
        if !self.by_regex.is_empty() {
            let text = name.to_string();
            self.by_regex
                .iter()
                .filter(|(regex, _)| regex.is_match(&text))
                .for_each(|(_, entry)| take(entry));
        }
        rank
    }
}

/// Reports whether a pattern matches a name. [`Domains`] does so for many names and patterns.
pub fn matches(pattern: &DomainPattern, name: NameRef<'_>) -> bool {
    let wire = |text: &str| DomainName::parse(text).map(|name| Name::from(&name));
    match pattern {
        DomainPattern::Suffix(zone) => wire(zone).is_ok_and(|zone| name.is_within(zone.as_ref())),
        DomainPattern::Exact(matches_name) => {
            wire(matches_name).is_ok_and(|matches_name| matches_name.as_ref() == name)
        }
        DomainPattern::Below(zone) => {
            wire(zone).is_ok_and(|zone| name != zone.as_ref() && name.is_within(zone.as_ref()))
        }
        DomainPattern::Regex(expression) => {
            Regex::new(expression).is_ok_and(|regex| regex.is_match(&name.to_string()))
        }
    }
}

/// Reports whether a pattern is known to match every name that another one matches.
pub fn covers(pattern: &DomainPattern, other: &DomainPattern) -> bool {
    let within = |zone: &str, name: &str| {
        name.strip_suffix(zone).map(|front| (front.is_empty(), front.ends_with('.')))
    };
    match (pattern, other) {
        (one, same) if one == same => true,
        (
            DomainPattern::Suffix(zone),
            DomainPattern::Suffix(name) | DomainPattern::Exact(name) | DomainPattern::Below(name),
        ) => within(zone, name).is_some_and(|(same, matches_subdomains)| same || matches_subdomains),
        (DomainPattern::Below(zone), DomainPattern::Suffix(name) | DomainPattern::Exact(name)) => {
            within(zone, name).is_some_and(|(_, matches_subdomains)| matches_subdomains)
        }
        (DomainPattern::Below(zone), DomainPattern::Below(name)) => {
            within(zone, name).is_some_and(|(same, matches_subdomains)| same || matches_subdomains)
        }
        _ => false,
    }
}

/// Returns the rank of the first policy that matches one of the names that a client resolved to an address.
pub fn fqdn_rank(rules: &[DomainRule], names: &[Name], device: u32) -> Option<Rank> {
    let for_it = rules.iter().filter(|rule| rule.device.is_none_or(|only| only == device));
    let matching = for_it.filter(|rule| names.iter().any(|name| matches(&rule.pattern, name.as_ref())));
    matching.map(|rule| rule.rank).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(rules: &[(&str, u32, Option<u32>)], name: &str, device: u32) -> Option<u32> {
        let rules: Vec<DomainRule> = rules
            .iter()
            .map(|(text, rank, device)| {
                let pattern = match text.split_at(1) {
                    ("=", rest) => DomainPattern::Exact(rest.into()),
                    ("~", rest) => DomainPattern::Regex(rest.into()),
                    ("*", rest) => DomainPattern::Below(rest.trim_start_matches('.').into()),
                    _ => DomainPattern::Suffix((*text).into()),
                };
                DomainRule { pattern, rank: Rank::of_wire(*rank).expect("a rank"), device: *device }
            })
            .collect();
        let name = Name::from(&DomainName::parse(name).expect("a name"));
        let rank = Domains::new(&rules).rank(name.as_ref(), device);
        assert_eq!(rank, fqdn_rank(&rules, &[name], device));
        rank.map(Rank::get)
    }

    #[test]
    fn each_kind_of_pattern_matches_what_it_says() {
        let rules = [
            ("example.com", 5, None),
            ("=a.example", 4, None),
            ("*.b.example", 3, None),
            ("~^x[0-9]+\\.", 2, None),
        ];
        for (name, want) in [
            ("example.com", Some(5)),
            ("www.example.com", Some(5)),
            ("myexample.com", None),
            ("a.example", Some(4)),
            ("www.a.example", None),
            ("b.example", None),
            ("www.b.example", Some(3)),
            ("x12.example.com", Some(2)),
            ("x.example.org", None),
        ] {
            assert_eq!(rank(&rules, name, 0), want, "{name}");
        }
    }

    #[test]
    fn a_pattern_covers_what_it_matches_whole() {
        use DomainPattern::{Below, Exact, Regex, Suffix};
        let text = str::to_owned;
        assert!(covers(&Suffix(text("a.b")), &Suffix(text("x.a.b"))));
        assert!(covers(&Suffix(text("a.b")), &Below(text("a.b"))));
        assert!(covers(&Below(text("a.b")), &Below(text("a.b"))));
        assert!(covers(&Below(text("a.b")), &Exact(text("x.a.b"))));
        assert!(!covers(&Below(text("a.b")), &Suffix(text("a.b"))));
        assert!(!covers(&Suffix(text("a.b")), &Exact(text("xa.b"))));
        assert!(!covers(&Exact(text("a.b")), &Suffix(text("a.b"))));
        assert!(!covers(&Regex(text("a")), &Exact(text("a.b"))));
    }

    #[test]
    fn a_rule_for_one_device_is_for_no_other() {
        let rules = [("example.com", 0, Some(7)), ("example.com", 1, None)];
        assert_eq!((rank(&rules, "example.com", 7), rank(&rules, "example.com", 8)), (Some(0), Some(1)));
    }
}
