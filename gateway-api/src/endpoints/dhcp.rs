//! DHCP server: settings, reservations and leases.

mod leases;
mod settings;

use gateway_model::kinds::DhcpReservation;
use gateway_model::settings::groups::DhcpConfig;

use crate::authorization::Access;
use crate::table::Method::Put;
use crate::table::{Collection, Ops, Placeholder, SchemaSource, Table};

pub fn rows(t: &mut Table) {
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
    let endpoint = t.view("/dhcp/leases", "list_dhcp_leases", leases::list);
    endpoint
        .summary("List the leases, ended ones included, by address")
        .doc("An ended lease is kept until another client needs its address. Addresses that hosts use without a lease are in the state declined.")
        .parameter("limit", Placeholder::Integer, "Maximum number of leases, 1 to 1000. Without it all are returned.");
    endpoint.output = Some(SchemaSource::new(leases::schema));
    (endpoint.list, endpoint.filters) = (true, true);
}
