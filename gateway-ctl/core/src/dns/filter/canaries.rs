//! Canaries of browsers and systems: names that tell them to use the resolver of the network.

use gateway_model::domain::DomainName;

use super::entry::{Entry, RuleEffect, Tier};
use super::pattern::Test;
use crate::dns::decision::{Action, Cause};
use crate::dns::domain_set::Form;
use crate::dns::name::Name;

/// Names that software queries before it uses its own resolver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canaries {
    /// `use-application-dns.net`: browsers with their own encrypted DNS.
    pub application_dns: bool,
    /// `mask.icloud.com` and `mask-h2.icloud.com`: iCloud Private Relay.
    pub private_relay: bool,
    /// `resolver.arpa`: discovery of designated resolvers (RFC 9462).
    pub designated_resolvers: bool,
}

impl Default for Canaries {
    fn default() -> Canaries {
        Canaries { application_dns: true, private_relay: true, designated_resolvers: true }
    }
}

impl Canaries {
    pub(super) fn entries(self) -> Vec<Entry> {
        let groups: [(bool, &[&str], Action); 3] = [
            (self.application_dns, &["use-application-dns.net"], Action::Nxdomain),
            (self.private_relay, &["mask.icloud.com", "mask-h2.icloud.com"], Action::Nxdomain),
            (self.designated_resolvers, &["resolver.arpa"], Action::NoData),
        ];
        let enabled = groups.into_iter().filter(|(enabled, _, _)| *enabled);
        let names =
            enabled.flat_map(|(_, names, action)| names.iter().map(move |name| (*name, action.clone())));
        let entry = |(text, action): (&str, Action)| {
            let name = DomainName::parse(text).ok()?;
            Some(Entry {
                cause: Cause::Canary,
                id: None,
                text: text.into(),
                tier: Tier::Canary,
                effect: RuleEffect::Do(action),
                test: Test::Name(Name::from(&name), Form::Both),
                conditions: None,
            })
        };
        names.filter_map(entry).collect()
    }
}
