//! Patterns of names in filter rules: a name, a wildcard, a regular expression, a rule in adblock syntax.
//!
//! The resolver's filter matches with these patterns: everything that is accepted here compiles there.

use std::fmt;

use regex::bytes::Regex;

use crate::domain::DomainName;
use crate::validated::text_enum;

mod adblock;
mod expression;

pub use adblock::{AdblockRule, AdblockTarget};
pub use expression::matches_wildcard;
pub(crate) use expression::regex;
use expression::wildcard;

text_enum! {
    /// Comparison of a pattern with the queried name.
    #[derive(Default)]
    pub enum Match {
        /// This name only.
        Exact = "exact",
        /// The domain and its subdomains.
        #[default]
        Suffix = "suffix",
        /// `*` stands for any characters, including dots.
        Wildcard = "wildcard",
        /// A regular expression, found anywhere in the name unless it has anchors.
        Regex = "regex",
        /// A rule for host names in the syntax of ad blockers.
        Adblock = "adblock",
    }
}

/// Longest pattern.
pub const MAX_PATTERN: usize = 512;

/// A pattern as it is matched.
#[derive(Clone, Debug)]
pub enum Pattern {
    Exact(DomainName),
    Suffix(DomainName),
    /// Lower case, with at least one `*`.
    Wildcard(String),
    Regex(Regex),
    Adblock(Box<AdblockRule>),
}

impl Pattern {
    /// Parses a pattern, or returns its fault.
    pub fn parse(kind: Match, text: &str) -> Result<Pattern, String> {
        if text.is_empty() {
            return Err("This field is required.".to_owned());
        }
        if text.len() > MAX_PATTERN {
            return Err(format!("At most {MAX_PATTERN} bytes."));
        }
        if text.chars().any(char::is_control) {
            return Err("No control characters.".to_owned());
        }
        match kind {
            Match::Exact => name(text).map(Pattern::Exact),
            Match::Suffix => name(text).map(Pattern::Suffix),
            Match::Wildcard => wildcard(text).map(Pattern::Wildcard),
            Match::Regex => regex(text).map(Pattern::Regex),
            Match::Adblock => AdblockRule::parse(text).map(|rule| Pattern::Adblock(Box::new(rule))),
        }
    }

    /// Reports whether the pattern matches a name in canonical form, without its modifiers.
    pub fn matches(&self, asked: &DomainName) -> bool {
        match self {
            Pattern::Exact(name) => name == asked,
            Pattern::Suffix(name) => asked.is_within(name),
            Pattern::Wildcard(text) => matches_wildcard(text.as_bytes(), asked.as_str().as_bytes()),
            Pattern::Regex(regex) => regex.is_match(asked.as_str().as_bytes()),
            Pattern::Adblock(rule) => rule.matches(asked),
        }
    }
}

/// The one spelling.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Exact(name) | Pattern::Suffix(name) => name.fmt(f),
            Pattern::Wildcard(text) => f.write_str(text),
            Pattern::Regex(regex) => f.write_str(regex.as_str()),
            Pattern::Adblock(rule) => rule.fmt(f),
        }
    }
}

fn name(text: &str) -> Result<DomainName, String> {
    if text.contains('*') {
        return Err("A pattern with * needs the match wildcard.".to_owned());
    }
    DomainName::parse(text).map_err(|error| format!("Not a domain name: {error}."))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(kind: Match, pattern: &str, name: &str) -> bool {
        Pattern::parse(kind, pattern).unwrap().matches(&DomainName::parse(name).unwrap())
    }

    #[test]
    fn patterns_match_what_they_say() {
        let cases = [
            (Match::Exact, "Example.com", "example.com", true),
            (Match::Exact, "example.com", "www.example.com", false),
            (Match::Suffix, "example.com", "www.example.com", true),
            (Match::Suffix, "example.com", "myexample.com", false),
            (Match::Suffix, "bücher.example", "a.xn--bcher-kva.example", true),
            (Match::Wildcard, "ads*.example.com", "ads12.eu.example.com", true),
            (Match::Wildcard, "*.example.com", "example.com", false),
            (Match::Wildcard, "*a*b*", "xxaxxbxx.com", true),
            (Match::Wildcard, "*.Bücher.example", "a.xn--bcher-kva.example", true),
            (Match::Regex, r"^ad\d+\.", "ad7.example.com", true),
            (Match::Regex, r"^AD\d+\.", "ad7.example.com", true),
            (Match::Regex, r"^ad\d+\.", "bad7.example.com", false),
            (Match::Adblock, "||example.com^", "www.example.com", true),
            (Match::Adblock, "||example.com^", "example.com.evil.net", false),
            (Match::Adblock, "@@||example.com^$important", "example.com", true),
            (Match::Adblock, "|example.com^", "www.example.com", false),
            (Match::Adblock, "example.com", "www.example.com", true),
            (Match::Adblock, "||ads*.example.com^", "ads1.example.com", true),
            (Match::Adblock, "/^ad[0-9]+\\./", "ad1.example.com", true),
            (Match::Adblock, "||example.com^$denyallow=good.example.com", "good.example.com", false),
        ];
        for (kind, pattern, name, want) in cases {
            assert_eq!(matches(kind, pattern, name), want, "{kind} {pattern} {name}");
        }
    }

    #[test]
    fn unmatchable_patterns_are_refused() {
        let big = "(a{1000}){1000}";
        let deep = "(".repeat(100) + &")".repeat(100);
        let long = "a".repeat(600);
        let cases = [
            (Match::Exact, ""),
            (Match::Exact, "*.example.com"),
            (Match::Suffix, "a b"),
            (Match::Suffix, "192.0.2.1"),
            (Match::Wildcard, "example.com"),
            (Match::Wildcard, "*..com"),
            (Match::Wildcard, "* .com"),
            (Match::Regex, "("),
            (Match::Regex, "a{2,1}"),
            (Match::Regex, r"(?=a)"),
            (Match::Regex, big),
            (Match::Regex, deep.as_str()),
            (Match::Suffix, long.as_str()),
            (Match::Adblock, "||"),
            (Match::Adblock, "@@"),
            (Match::Adblock, "||example.com^$third-party"),
            (Match::Adblock, "||example.com/path"),
            (Match::Adblock, "example.com##.banner"),
            (Match::Adblock, "! comment"),
            (Match::Adblock, "# comment"),
            (Match::Adblock, "/(/"),
            (Match::Adblock, "||example.com^$dnstype=NONSENSE"),
            (Match::Adblock, "||example.com^$important,important"),
            (Match::Adblock, "||example.com^$"),
        ];
        for (kind, pattern) in cases {
            assert!(Pattern::parse(kind, pattern).is_err(), "{kind} {pattern:.40}");
        }
    }

    /// Returns the expression that a pattern stands for in URLs, or in names where it does not begin like a URL.
    fn adblock_expression(text: &str) -> regex::Regex {
        let (mut expression, rest) = match (text.strip_prefix("||"), text.strip_prefix('|')) {
            (Some(rest), _) => ("^(http|https|ws|wss)://([a-z0-9_.-]+\\.)?".to_owned(), rest),
            (None, Some(rest)) => ("^".to_owned(), rest),
            (None, None) => (String::new(), text),
        };
        let (rest, at_end) = rest.strip_suffix('|').map_or((rest, ""), |rest| (rest, "$"));
        for letter in rest.chars() {
            match letter {
                '*' => expression.push_str(".*"),
                '^' => expression.push_str("([^ a-zA-Z0-9.%_-]|$)"),
                letter => expression.push_str(&regex::escape(&letter.to_string())),
            }
        }
        regex::Regex::new(&format!("{expression}{at_end}")).expect("an expression")
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_and_what_is_read_has_one_spelling(
            kind in 0usize..5,
            text in "\\PC{0,40}|(@@)?\\|{0,2}[a-z*.]{1,20}\\^?(\\$[a-z=~|,]{0,20})?|[a-z*.^$()\\[\\]|+?{}0-9\\\\]{0,24}",
            name in "[a-z]{1,8}\\.[a-z]{2,5}",
        ) {
            let kind = Match::ALL[kind];
            if let Ok(pattern) = Pattern::parse(kind, &text) {
                let again = Pattern::parse(kind, &pattern.to_string()).expect("its own spelling is read");
                prop_assert_eq!(again.to_string(), pattern.to_string());
                let name = DomainName::parse(&name).expect("a name");
                prop_assert_eq!(again.matches(&name), pattern.matches(&name));
            }
        }

        #[test]
        fn an_adblock_rule_agrees_with_the_expression_of_its_syntax(
            start in "|\\|\\||\\||://|http://|\\|http://",
            body in "[ab.*-]{1,8}",
            end in "|\\^|/|\\^\\||\\^\\*",
            names in prop::collection::vec("[ab]{1,2}(\\.[ab]{1,3}(-[ab])?){0,3}", 1..8),
        ) {
            let text = format!("{start}{body}{end}");
            // A name alone is shorthand for the domain; a name that ends with a dot is the same as without.
            let is_shorthand = start.is_empty() && end.is_empty() && !body.contains('*') && !body.starts_with('.');
            // The slash is not in the text that is matched there; it is read as the end of the name all the same.
            let is_url_of_name = start == "|" && end == "/";
            prop_assume!(!is_shorthand && !is_url_of_name && !body.ends_with('.'));
            if let Ok(rule) = Pattern::parse(Match::Adblock, &text) {
                let expression = adblock_expression(&text);
                for name in &names {
                    let by_url = start == "||" || start.ends_with("://");
                    let url = if by_url { format!("http://{name}/") } else { name.clone() };
                    let name = DomainName::parse(name).expect("a name");
                    prop_assert_eq!(rule.matches(&name), expression.is_match(&url), "{} {} {}", text, expression, name);
                }
            }
        }

        #[test]
        fn a_wildcard_agrees_with_its_regular_expression(pattern in "[ab.*]{1,8}", text in "[ab.]{0,10}") {
            let expression = format!("^{}$", pattern.replace('.', "\\.").replace('*', ".*"));
            prop_assert_eq!(
                matches_wildcard(pattern.as_bytes(), text.as_bytes()),
                regex(&expression).expect("an expression").is_match(text.as_bytes())
            );
        }
    }
}
