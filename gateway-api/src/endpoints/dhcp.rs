//! DHCP server and interface settings.

use gateway_model::capability::Capability;
use gateway_model::kinds::DhcpReservation;
use gateway_model::settings::groups::DhcpConfig;

use crate::authorization::Access;
use crate::table::Method::{Get, Post, Put};
use crate::table::{Collection, Ops, Table};

pub fn rows(t: &mut Table) {
    t.group::<DhcpConfig>("/dhcp", "replace_dhcp_config", Access::Operate);
    t.collection::<DhcpReservation>(Collection {
        path: "/dhcp/reservations",
        item: "/dhcp/reservations/{mac}",
        actions: ["create_dhcp_reservation", "replace_dhcp_reservation", "delete_dhcp_reservation"],
        ops: Ops::ALL,
        live: None,
    });
    t.unsupported(
        Capability::Dhcp,
        &[
            (Get, "/dhcp/leases"),
            (Get, "/interfaces/{name}/config"),
            (Put, "/interfaces/{name}/config"),
            (Post, "/interfaces/{name}/dhcp/start"),
            (Post, "/interfaces/{name}/dhcp/stop"),
            (Post, "/interfaces/{name}/dhcp/renew"),
        ],
    );
}
