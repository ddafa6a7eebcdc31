//! The external filter: its configuration, its status, and whether the resolver uses it.

use gateway_dns::extfilter::Status as SessionStatus;
use gateway_model::State;
use gateway_model::settings::bootstrap::DnsBackend;
use gateway_model::settings::groups::ExtFilterConfig;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::authorization::Access;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::request::Req;
use crate::table::{Audit, Effect, Table};

/// Setting that selects the external filter or the upstream servers.
const BACKEND: &str = "dns.backend";

pub(super) fn rows(t: &mut Table) {
    t.group::<ExtFilterConfig>("/dns/extfilter/config", "replace_dns_extfilter", Access::Administer);
    t.view("/dns/extfilter/status", "get_dns_extfilter_status", status)
        .summary("Status of the external filter, as it reports it")
        .doc("Queries the filter, so the response takes as long as the filter's: up to five seconds if it is unreachable.");
    let enables = Effect::Stores(Audit { action: "enable_dns_extfilter", resource_type: "setting" });
    t.command("/dns/extfilter/enable", "enable_dns_extfilter", enables, enable)
        .summary("Use the external filter as the upstream")
        .doc(
            "Sets dns.backend to extfilter, from the next query on. Names with a forwarder, and devices that a policy routes elsewhere, are resolved as before. While the filter does not respond, its names are not resolved.",
        )
        .answers(&[Code::InvalidState]);
    let disables = Effect::Stores(Audit { action: "disable_dns_extfilter", resource_type: "setting" });
    t.command("/dns/extfilter/disable", "disable_dns_extfilter", disables, disable)
        .summary("Use the upstream servers again")
        .doc("Sets dns.backend to integrated, effective with the next query.");
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ExtFilterStatus")]
struct Status {
    /// The address of the filter is configured.
    configured: bool,
    /// The resolver forwards queries to the filter.
    enabled: bool,
    /// The API of the filter responds.
    reachable: bool,
    /// Version of the resolver of the filter.
    version: Option<String>,
    /// Address of the API of the filter.
    url: Option<String>,
    /// The filter blocks domains. Null if unknown.
    blocking: Option<bool>,
    /// Queries in the last 24 hours, as counted by the filter.
    queries_today: Option<u64>,
    /// Blocked queries in the last 24 hours, as counted by the filter.
    blocked_today: Option<u64>,
    /// Error of the API of the filter, else of its resolver.
    error: Option<String>,
}

impl From<SessionStatus> for Status {
    fn from(reported: SessionStatus) -> Status {
        Status {
            configured: reported.configured,
            enabled: reported.enabled,
            reachable: reported.reachable,
            version: reported.version,
            url: reported.url,
            blocking: reported.blocking,
            queries_today: reported.queries_today,
            blocked_today: reported.blocked_today,
            error: reported.error,
        }
    }
}

async fn status(cx: Cx, _: Req<()>) -> Result<Status, ApiError> {
    let open = cx.open()?;
    let mut status = Status::from(open.extfilter.status().await);
    if status.error.is_none() && status.enabled {
        status.error = resolver_error(&cx)?;
    }
    Ok(status)
}

/// Returns the error of the resolver of the filter while its API works.
fn resolver_error(cx: &Cx) -> Result<Option<String>, ApiError> {
    let open = cx.open()?;
    let resolver = open.store.current().group::<ExtFilterConfig>().resolver();
    let (Some(names), Some(resolver)) = (&open.names, resolver) else { return Ok(None) };
    let resolver = resolver.to_string();
    let dead = names.upstreams().into_iter().find(|upstream| upstream.address == resolver && !upstream.ok);
    Ok(dead.map(|upstream| {
        let why = upstream.last_error.unwrap_or_default();
        format!("its resolver {resolver} does not answer: {why}")
    }))
}

async fn enable(cx: Cx, request: Req<()>) -> Result<Status, ApiError> {
    if !cx.open()?.store.current().group::<ExtFilterConfig>().is_configured() {
        let message = "It is not set where the external filter is: PUT /dns/extfilter/config.";
        return Err(ApiError::new(Code::InvalidState, message)
            .detail("state", "not_set_up")
            .detail("allowed", vec!["PUT /dns/extfilter/config"]));
    }
    set(&cx, DnsBackend::Extfilter).await?;
    status(cx, request).await
}

async fn disable(cx: Cx, request: Req<()>) -> Result<Status, ApiError> {
    set(&cx, DnsBackend::Integrated).await?;
    status(cx, request).await
}

async fn set(cx: &Cx, backend: DnsBackend) -> Result<(), ApiError> {
    cx.commit(move |draft: &mut State| {
        draft.set(BACKEND, json!(backend));
        Ok(())
    })
    .await
}
