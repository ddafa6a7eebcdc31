//! Filter rules of the resolver: what happens to a query whose name matches.
//!
//! `allow` wins over every other action; a rule for devices over one for groups, and that over one for all.

use std::net::IpAddr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::dns::{Scope, Weekday, resolve_scope};
use crate::bulk_edit::Names;
use crate::domain::DomainName;
use crate::pattern::{Match, Pattern};
use crate::problem::{Problems, code};
use crate::query_type::QueryType;
use crate::references::Ref;
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;
use crate::validated::{check_free_text, text_enum};

text_enum! {
    /// Action for a matching query.
    #[derive(Default)]
    pub enum FilterAction {
        #[default]
        Block = "block",
        Allow = "allow",
        /// The answer of the rule.
        Rewrite = "rewrite",
        /// "There is no such name."
        Nxdomain = "nxdomain",
        Refuse = "refuse",
        /// Resolved as usual and noted.
        Log = "log",
    }
}

/// Times at which a rule applies, by the clock of the gateway. An end before the start is on the next day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Schedule {
    /// Every day if empty.
    pub days: Vec<Weekday>,
    /// `HH:MM`
    pub start: String,
    /// `HH:MM`, exclusive; `24:00` is midnight.
    pub end: String,
}

impl Schedule {
    fn check(&self, path: &str, problems: &mut Problems) {
        for (field, text, last) in [("start", &self.start, 1439), ("end", &self.end, 1440)] {
            let path = format!("{path}.{field}");
            match minutes(text) {
                _ if text.is_empty() => problems.required(path),
                Some(minutes) if minutes <= last => {}
                _ => drop(problems.add(code::FORMAT, path, "Expected a time of day such as 07:30.")),
            }
        }
        if !self.start.is_empty() && self.start == self.end {
            problems.add(
                code::CONFLICT,
                format!("{path}.end"),
                "It ends when it starts; for the whole day use 00:00 to 24:00.",
            );
        }
        for (index, day) in self.days.iter().enumerate() {
            if self.days[..index].contains(day) {
                problems.add(
                    code::DUPLICATE,
                    format!("{path}.days[{index}]"),
                    format!("{day} is given twice."),
                );
            }
        }
    }
}

/// Minutes since midnight.
fn minutes(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |text: &str| {
        (text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
    };
    let (hours, minutes): (u16, u16) = (number(hours)?, number(minutes)?);
    (minutes < 60).then_some(hours * 60 + minutes)
}

/// A filter rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DnsFilterRule {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    pub pattern: String,
    pub r#match: Match,
    pub action: FilterAction,
    /// For the action rewrite: an address, or a name that is resolved instead of the queried one.
    pub answer: Option<String>,
    /// Types of queries it is for; all if empty.
    pub qtypes: Vec<QueryType>,
    pub scope: Scope,
    pub enabled: bool,
    pub comment: String,
    pub schedule: Option<Schedule>,
}

impl Default for DnsFilterRule {
    fn default() -> DnsFilterRule {
        DnsFilterRule {
            meta: Meta::default(),
            pattern: String::new(),
            r#match: Match::Suffix,
            action: FilterAction::Block,
            answer: None,
            qtypes: Vec::new(),
            scope: Scope::default(),
            enabled: true,
            comment: String::new(),
            schedule: None,
        }
    }
}

/// Counters of a rule.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct DnsFilterRuleShown {
    /// Number of queries that the rule decided since the daemon started. Null if the resolver does not run.
    hits: Option<u64>,
    last_hit: Option<jiff::Timestamp>,
}

impl Resource for DnsFilterRule {
    const NOUN: &'static str = "dns_filter_rule";
    const COLLECTION: &'static str = "dns_filter_rules";
    const READ_ONLY: &'static [&'static str] = &["hits", "last_hit"];
    const REQUIRED: &'static [&'static str] = &["pattern"];
    const LABEL_IS_NAME: bool = false;

    fn label(&self) -> &str {
        &self.pattern
    }

    fn prepare(&mut self) {
        if let Ok(pattern) = Pattern::parse(self.r#match, &self.pattern) {
            self.pattern = pattern.to_string();
        }
        if let Some(name) = self.answer.as_deref().and_then(answer) {
            self.answer = Some(name);
        }
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        match Pattern::parse(self.r#match, &self.pattern) {
            Err(_) if self.pattern.is_empty() => problems.required("pattern"),
            Err(message) => drop(problems.add(code::FORMAT, "pattern", message)),
            Ok(Pattern::Adblock(rule)) if rule.exception && self.action != FilterAction::Allow => {
                problems.add(
                    code::CONFLICT,
                    "action",
                    "A pattern with @@ is an exception: its action is allow.",
                );
            }
            Ok(Pattern::Adblock(rule)) if !rule.exception && self.action == FilterAction::Allow => {
                problems.add(code::CONFLICT, "pattern", "A pattern whose action is allow begins with @@.");
            }
            Ok(_) => {}
        }
        match (&self.answer, self.action) {
            (None, FilterAction::Rewrite) => problems.required("answer"),
            (Some(text), FilterAction::Rewrite) if answer(text).is_none() => {
                problems.add(code::FORMAT, "answer", "Expected an address or a domain name.");
            }
            (Some(_), FilterAction::Rewrite) | (None, _) => {}
            (Some(_), _) => {
                problems.add(code::CONFLICT, "answer", "Only the action rewrite has an answer.");
            }
        }
        for (index, query_type) in self.qtypes.iter().enumerate() {
            if self.qtypes[..index].contains(query_type) {
                problems.add(
                    code::DUPLICATE,
                    format!("qtypes[{index}]"),
                    format!("{query_type} is given twice."),
                );
            }
        }
        self.scope.check("scope", state, problems);
        check_free_text("comment", &self.comment, 1000, problems);
        if let Some(schedule) = &self.schedule {
            schedule.check("schedule", problems);
        }
    }

    fn refs(&self) -> Vec<Ref> {
        self.scope.refs("scope")
    }

    fn resolve(input: &mut Map<String, Value>, names: &Names<'_>) {
        resolve_scope(input, names);
    }

    fn keys(&self, keys: &mut Keys) {
        let DnsFilterRule { pattern, r#match, action, qtypes, scope, schedule, .. } = self;
        let same = serde_json::to_string(&(r#match, pattern, action, qtypes, scope, schedule));
        keys.unique("pattern", same.expect("texts and lists are JSON"));
    }

    fn add_derived(&self, _state: &State, shown: &mut Map<String, Value>) {
        shown.insert("hits".into(), Value::Null);
        shown.insert("last_hit".into(), Value::Null);
    }

    fn shown_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(DnsFilterRuleShown::json_schema(generator))
    }
}

/// An address or a name in its one spelling.
fn answer(text: &str) -> Option<String> {
    match text.trim().parse::<IpAddr>() {
        Ok(address) => Some(address.to_string()),
        Err(_) => DomainName::parse(text).ok().map(|name| name.to_string()),
    }
}
