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
        let route = match self.resolver.dry_run(from, name.map(Name::as_ref)) {
            QueryOutcome::Decided(decision) => return decided(&decision),
            QueryOutcome::Here => return "answered here".to_owned(),
            QueryOutcome::Elsewhere(route) => route,
        };
        match self.upstreams.select(name.map_or(NameRef::ROOT, Name::as_ref), &route) {
            Ok(UpstreamSelection { servers, routes }) => {
                let called = |route| if route == DnsForwarder::AUTO { "the default route" } else { route };
                let routes: Vec<&str> = routes.iter().map(|route| called(route)).collect();
                format!("{} by {}", servers.join(", "), routes.join(", "))
            }
            Err(why) => format!("not resolved: {why}"),
        }
    }
}

fn decided(decision: &Decision) -> String {
    let what = match decision.action {
        Action::Addresses(_) | Action::Name(_) | Action::LocalOnly => "rewritten",
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
        Cause::Privacy => "the privacy block",
        Cause::Rebinding => "the protection against rebinding:",
    };
    let id = because.id.map(|id| format!(" ({id})")).unwrap_or_default();
    format!("{what} by {by} {}{id}", because.rule)
}
