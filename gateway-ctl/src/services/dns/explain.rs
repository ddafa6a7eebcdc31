//! Human-readable description of how a client's queries are answered, for `/policy/evaluate`.

use std::net::IpAddr;

use gateway_core::dns::{Action, Cause, Decision, Name, NameRef};
use gateway_dns::serve::QueryOutcome;
use gateway_dns::upstream::UpstreamSelection;
use gateway_model::kinds::DnsForwarder;

use super::DnsService;

impl DnsService {
    /// Describes the current result for a name, or for names without a rule if `name` is `None`. Sends no query.
    pub fn explain(&self, from: IpAddr, name: Option<&Name>) -> String {
        let way = match self.resolver.dry_run(from, name.map(Name::as_ref)) {
            QueryOutcome::Decided(decision) => return decided(&decision),
            QueryOutcome::Here => return "answered here".to_owned(),
            QueryOutcome::Elsewhere(way) => way,
        };
        match self.upstreams.select(name.map_or(NameRef::ROOT, Name::as_ref), &way) {
            Ok(UpstreamSelection { servers, ways }) => {
                let called = |way| if way == DnsForwarder::AUTO { "the default way" } else { way };
                let ways: Vec<&str> = ways.iter().map(|way| called(way)).collect();
                format!("{} by {}", servers.join(", "), ways.join(", "))
            }
            Err(why) => format!("not resolved: {why}"),
        }
    }
}

fn decided(decision: &Decision) -> String {
    let what = match decision.action {
        Action::Addresses(_) | Action::Name(_) => "rewritten",
        Action::Pass => "passed",
        Action::Block | Action::Nxdomain | Action::NoData | Action::Refuse => "blocked",
    };
    let Some(because) = &decision.because else { return what.to_owned() };
    let by = match because.cause {
        Cause::Rule => "the filter rule",
        Cause::Allowlist => "the allowlist",
        Cause::Blocklist => "the blocklist",
        Cause::Feed => "the threat feed",
        Cause::Rewrite => "the rewrite",
        Cause::Canary => "the canary",
    };
    let id = because.id.map(|id| format!(" ({id})")).unwrap_or_default();
    format!("{what} by {by} {}{id}", because.rule)
}
