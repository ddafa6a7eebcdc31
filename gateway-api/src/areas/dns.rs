//! The resolver: its objects (filters, zones, lists, forwarders), and itself at work.

use gateway_model::State;
use gateway_model::kinds::{
    DnsAllow, DnsBlock, DnsFilterRule, DnsForwarder, DnsPreset, DnsRecord, DnsRewrite, DnsZone, ThreatFeed,
};
use gateway_model::settings::groups::DnsRotation;
use serde_json::Value;

use crate::access::Access;
use crate::gateway::Open;
use crate::table::Method::{Get, Post};
use crate::table::{Collection, Ops, Table};

mod lists;
mod resolver;

pub fn rows(t: &mut Table) {
    t.group::<DnsRotation>("/dns/rotation", "replace_dns_rotation", Access::Operate);
    t.collection::<DnsFilterRule>(Collection {
        path: "/dns/filter-rules",
        item: "/dns/filter-rules/{id}",
        actions: ["create_dns_filter_rule", "replace_dns_filter_rule", "delete_dns_filter_rule"],
        ops: Ops::ALL,
        live: None,
    });
    t.collection::<DnsZone>(Collection {
        path: "/dns/zones",
        item: "/dns/zones/{id}",
        actions: ["create_dns_zone", "replace_dns_zone", "delete_dns_zone"],
        ops: Ops::ALL,
        live: Some(counted_elsewhere),
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
        live: None,
    });
    t.collection::<DnsAllow>(Collection {
        path: "/dns/allowlist",
        item: "/dns/allowlist/{id}",
        actions: ["create_dns_allow", "replace_dns_allow", "delete_dns_allow"],
        ops: Ops::ALL,
        live: None,
    });
    t.collection::<DnsBlock>(Collection {
        path: "/dns/blocklist",
        item: "/dns/blocklist/{domain}",
        actions: ["create_dns_block", "replace_dns_block", "delete_dns_block"],
        ops: Ops::ALL,
        live: None,
    });
    lists::rows::<DnsAllow>(t, "/dns/allowlist", "remove_from_dns_allowlist");
    lists::rows::<DnsBlock>(t, "/dns/blocklist", "remove_from_dns_blocklist");
    resolver::rows(t);
    unbuilt(t);
}

fn unbuilt(t: &mut Table) {
    t.unsupported(
        "an external filter backend, which this version does not use",
        &[(Get, "/dns/extfilter/status"), (Post, "/dns/extfilter/enable"), (Post, "/dns/extfilter/disable")],
    );
}

/// A zone shows figures of its records, which change without it: its tag must not be its revision alone.
fn counted_elsewhere(_: &Open, _: &State, _: &mut [Value]) {}
