//! DHCP server: settings, reservations and leases.

mod leases;
mod settings;

use std::net::IpAddr;

use gateway_model::Warning;
use gateway_model::kinds::DhcpReservation;
use gateway_model::settings::groups::DhcpConfig;
use serde_json::Value;

use crate::authorization::Access;
use crate::gateway::Open;
use crate::query::parameters::ListQuery;
use crate::table::Method::{Post, Put};
use crate::table::{Collection, Ops, Output, SchemaSource, Table};

pub(super) fn rows(t: &mut Table) {
    t.group_checked::<DhcpConfig>("/dhcp", "replace_dhcp_config", Access::Operate, settings::check);
    t.observed_before::<DhcpConfig>("/dhcp", settings::other_servers);
    t.declared(Put, "/dhcp").doc = "Omitted fields take their defaults. Before the server is enabled on an interface, other servers are searched there, which takes up to four seconds; each that answers is in the warnings.";
    t.collection::<DhcpReservation>(Collection {
        path: "/dhcp/reservations",
        item: "/dhcp/reservations/{mac}",
        actions: ["create_dhcp_reservation", "replace_dhcp_reservation", "delete_dhcp_reservation"],
        ops: Ops::ALL,
        live: None,
    });
    t.warned(Post, "/dhcp/reservations", own_address);
    t.warned(Put, "/dhcp/reservations/{mac}", own_address);
    let endpoint = t.view("/dhcp/leases", "list_dhcp_leases", leases::list);
    endpoint
        .summary("List the leases, ended ones included, by address")
        .doc("An ended lease is kept until another client needs its address. Addresses that hosts use without a lease are in the state declined.")
        .query::<ListQuery>();
    endpoint.output = Output::FilteredList(SchemaSource::new(leases::schema));
}

/// Warns about a reservation of an address that the gateway itself has.
fn own_address(open: &Open, reservation: &Value) -> Vec<Warning> {
    let world = open.worlds.last();
    let Some(address) = reservation["ip"].as_str().and_then(|text| text.parse::<IpAddr>().ok()) else {
        return Vec::new();
    };
    let observed =
        world.facts.addresses.iter().flat_map(|(name, nets)| nets.iter().map(move |net| (name, net)));
    let configured = world.network.interfaces.iter();
    let configured = configured.filter_map(|(name, settings)| Some((name, settings.address.as_ref()?)));
    let own = observed.chain(configured).find(|(_, net)| net.addr() == address);
    own.map(|(name, _)| {
        let message = format!("{address} is the address of the gateway on {name}; no host can have it.");
        Warning::new("ip", message)
    })
    .into_iter()
    .collect()
}
