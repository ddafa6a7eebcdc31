//! Interfaces of the host: their roles, addresses and DHCP clients.

mod config;
mod dhcp;
mod list;
mod named;
pub(crate) mod presence;

use self::named::NOUN;
use crate::error::Code;
use crate::table::{Audit, Effect, Table};

const fn stores(action: &'static str) -> Effect {
    Effect::Stores(Audit { action, resource_type: NOUN })
}

pub(super) fn rows(t: &mut Table) {
    t.view("/interfaces", "list_interfaces", list::show)
        .summary("Interfaces of the host with their roles and addresses");
    t.view("/interfaces/{name}/config", "get_interface_config", config::show)
        .summary("Addresses of an interface: as configured, and as they are")
        .answers(&[Code::InvalidParameter, Code::NotFound])
        .tagged();
    t.change(
        "/interfaces/{name}/config",
        "replace_interface_config",
        stores("replace_interface_config"),
        config::replace,
    )
    .summary("Configure the addresses of an interface")
    .doc("In force when it is answered; at an uplink after the next start of the daemon (`pending_restart`).")
    .answers(&[Code::InvalidParameter, Code::NotFound, Code::InterfaceProtected])
    .tagged();
    for (path, action, run, summary) in [
        (
            "/interfaces/{name}/dhcp/start",
            "start_dhcp_client",
            dhcp::Command::Start,
            "Start the DHCP client of an interface, now and at each start of the daemon",
        ),
        (
            "/interfaces/{name}/dhcp/stop",
            "stop_dhcp_client",
            dhcp::Command::Stop,
            "Stop the DHCP client of an interface, and remove its lease",
        ),
        (
            "/interfaces/{name}/dhcp/renew",
            "renew_dhcp_lease",
            dhcp::Command::Renew,
            "Renew the lease of an interface now",
        ),
    ] {
        let effect = match run {
            dhcp::Command::Renew => Effect::Acts(Audit { action, resource_type: NOUN }),
            dhcp::Command::Start | dhcp::Command::Stop => stores(action),
        };
        t.command(path, action, effect, move |cx, request| dhcp::control(cx, request, run))
            .summary(summary)
            .doc("Refused for interfaces of the LAN and for uplinks.")
            .answers(&[
                Code::InvalidParameter,
                Code::NotFound,
                Code::InvalidState,
                Code::InterfaceProtected,
                Code::NotSupported,
            ]);
    }
}
