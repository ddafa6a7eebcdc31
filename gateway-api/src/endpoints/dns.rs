//! The resolver: its objects (filters, zones, lists, forwarders) and its status.

use gateway_core::dns::lists::Report;
use gateway_dns::lists::{State as ListState, Status as ListStatus};
use gateway_model::kinds::dns_list::{IgnoredLines, IgnoredReason};
use gateway_model::kinds::threat_feed::FeedStatus;
use gateway_model::kinds::{
    DnsAllow, DnsBlock, DnsFilterRule, DnsForwarder, DnsPreset, DnsRecord, DnsRewrite, DnsZone, ThreatFeed,
};
use gateway_model::settings::groups::DnsRotation;
use gateway_model::{Id, State};
use serde_json::{Map, Value};

use crate::authorization::Access;
use crate::gateway::Open;
use crate::table::{Collection, Live, Ops, Table};

mod extfilter;
mod lists;
mod log;
mod resolver;

pub(super) fn rows(t: &mut Table) {
    t.group::<DnsRotation>("/dns/rotation", "replace_dns_rotation", Access::Operate);
    t.collection::<DnsFilterRule>(Collection {
        path: "/dns/filter-rules",
        item: "/dns/filter-rules/{id}",
        actions: ["create_dns_filter_rule", "replace_dns_filter_rule", "delete_dns_filter_rule"],
        ops: Ops::ALL,
        live: Some(Live::beside(hits)),
    });
    t.collection::<DnsZone>(Collection {
        path: "/dns/zones",
        item: "/dns/zones/{id}",
        actions: ["create_dns_zone", "replace_dns_zone", "delete_dns_zone"],
        ops: Ops::ALL,
        live: Some(Live::within(copies)),
    });
    t.collection::<DnsRecord>(Collection {
        path: "/dns/records",
        item: "/dns/records/{id}",
        actions: ["create_dns_record", "replace_dns_record", "delete_dns_record"],
        ops: Ops::ALL,
        live: None,
    });
    t.collection::<DnsForwarder>(Collection {
        path: "/dns/forwarders",
        item: "/dns/forwarders/{id}",
        actions: ["create_dns_forwarder", "replace_dns_forwarder", "delete_dns_forwarder"],
        ops: Ops::ALL,
        live: None,
    });
    t.collection::<DnsPreset>(Collection {
        path: "/dns/presets",
        item: "/dns/presets/{id}",
        actions: ["create_dns_preset", "replace_dns_preset", "delete_dns_preset"],
        ops: Ops::ALL,
        live: None,
    });
    t.collection::<DnsRewrite>(Collection {
        path: "/dns/rewrites",
        item: "/dns/rewrites/{id}",
        actions: ["create_dns_rewrite", "replace_dns_rewrite", "delete_dns_rewrite"],
        ops: Ops::ALL,
        live: None,
    });
    t.collection::<ThreatFeed>(Collection {
        path: "/dns/threat-feeds",
        item: "/dns/threat-feeds/{id}",
        actions: ["create_threat_feed", "replace_threat_feed", "delete_threat_feed"],
        ops: Ops::ALL,
        live: Some(Live::beside(feeds)),
    });
    t.collection::<DnsAllow>(Collection {
        path: "/dns/allowlist",
        item: "/dns/allowlist/{id}",
        actions: ["create_dns_allow", "replace_dns_allow", "delete_dns_allow"],
        ops: Ops::ALL,
        live: Some(Live::beside(fetched)),
    });
    t.collection::<DnsBlock>(Collection {
        path: "/dns/blocklist",
        item: "/dns/blocklist/{domain}",
        actions: ["create_dns_block", "replace_dns_block", "delete_dns_block"],
        ops: Ops::ALL,
        live: Some(Live::beside(fetched)),
    });
    lists::rows::<DnsAllow>(t, "/dns/allowlist", "remove_from_dns_allowlist");
    lists::rows::<DnsBlock>(t, "/dns/blocklist", "remove_from_dns_blocklist");
    resolver::rows(t);
    log::rows(t);
    extfilter::rows(t);
}

/// Adds the transfer status of secondary zones. Primary zones also show values that change without their revision, such
/// as the number of records. Their entity tag must therefore include a digest.
fn copies(open: &Open, _: &State, shown: &mut [Value]) {
    let Some(names) = &open.names else { return };
    let secondary = |object: &&mut Map<String, Value>| object.get("type") == Some(&"secondary".into());
    for object in shown.iter_mut().filter_map(Value::as_object_mut).filter(secondary) {
        let Some(id) = id_of(object) else { continue };
        let copy = names.copy(id);
        object.insert("serial".into(), copy.serial.into());
        object.insert("records_count".into(), copy.records.into());
        object.insert("last_updated".into(), time(copy.last_updated));
        object.insert("last_checked".into(), time(copy.checked));
        object.insert("expires_at".into(), time(copy.expires));
        object.insert("error".into(), copy.error.into());
    }
}

/// Adds the hits of filter rules.
fn hits(open: &Open, _: &State, shown: &mut [Value]) {
    let Some(names) = &open.names else { return };
    let all = names.resolver.log().hits();
    each(shown, |id, object| {
        let hits = all.get(&id);
        object.insert("hits".into(), hits.map_or(0, |hits| hits.count).into());
        object.insert("last_hit".into(), time(hits.map(|hits| hits.last)));
    });
}

fn each(shown: &mut [Value], mut fill: impl FnMut(Id, &mut Map<String, Value>)) {
    for object in shown.iter_mut().filter_map(Value::as_object_mut) {
        if let Some(id) = id_of(object) {
            fill(id, object);
        }
    }
}

/// Adds the status of downloaded lists.
fn fetched(open: &Open, _: &State, shown: &mut [Value]) {
    each_list(open, shown, |object, list| {
        object.insert("ignored".into(), ignored(list.report.as_ref()));
        object.insert("rules_count".into(), list.report.map(|report| report.taken).into());
        object.insert("last_updated".into(), time(list.last_updated));
        object.insert("etag".into(), list.etag.into());
        object.insert("error".into(), list.error.into());
    });
}

fn feeds(open: &Open, _: &State, shown: &mut [Value]) {
    each_list(open, shown, |object, list| {
        let status = list.state.map(|state| match state {
            ListState::Ok => FeedStatus::Ok,
            ListState::Stale => FeedStatus::Stale,
            ListState::Error => FeedStatus::Error,
        });
        object.insert("ignored".into(), ignored(list.report.as_ref()));
        object.insert("entries".into(), list.report.map(|report| report.taken).into());
        object.insert("last_updated".into(), time(list.last_updated));
        object.insert("next_update".into(), time(list.next_update));
        object.insert("status".into(), status.map(|status| status.to_string()).into());
        object.insert("etag".into(), list.etag.into());
        object.insert("error".into(), list.error.into());
    });
}

/// Returns the lines of a list that were not taken, by reason; null before it was read.
fn ignored(report: Option<&Report>) -> Value {
    let lines = report.map(|report| {
        let mut reasons: Vec<IgnoredReason> = report
            .reasons
            .iter()
            .map(|count| IgnoredReason {
                reason: count.reason.to_string(),
                lines: count.lines,
                first_line: count.first_line,
            })
            .collect();
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.lines));
        IgnoredLines { total: report.ignored, reasons }
    });
    serde_json::to_value(lines).unwrap_or_default()
}

fn each_list(open: &Open, shown: &mut [Value], fill: impl Fn(&mut Map<String, Value>, ListStatus)) {
    let Some(names) = &open.names else { return };
    let now = open.now();
    each(shown, |id, object| fill(object, names.list(id, now)));
}

fn id_of(object: &Map<String, Value>) -> Option<Id> {
    object.get("id")?.as_str()?.parse().ok()
}

fn time(at: Option<jiff::Timestamp>) -> Value {
    at.map(|at| at.to_string()).into()
}
