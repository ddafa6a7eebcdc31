//! Checks of the DHCP settings that need the network: the interface, and other servers on it.

use std::future::Future;
use std::pin::Pin;

use gateway_core::state_machines::dhcp::outside_of_interface;
use gateway_ctl::services::dhcp::search;
use gateway_model::problem::code;
use gateway_model::settings::groups::DhcpConfig;
use gateway_model::{EditError, Problems, State, Warning};

use crate::gateway::Open;

/// Refuses interfaces that are not LAN, because requests from others are dropped before the server, and ranges outside of
/// the network of their interface, whose clients would not reach the gateway.
pub(super) fn check(open: &Open, draft: &State) -> Result<(), EditError> {
    let config: DhcpConfig = draft.group();
    let Some(interface) = config.interface.as_ref().filter(|_| config.enabled) else { return Ok(()) };
    let network = open.worlds.configuration().with(draft).network;
    let mut problems = Problems::new();
    if !network.lan.iter().any(|lan| lan == interface.as_str()) {
        let message = format!("{interface} is no LAN interface. There are {}.", network.lan.join(", "));
        problems.add(code::CONFLICT, "interface", message);
    } else if let Some(reason) = outside_of_interface(&config, &open.worlds.last().facts) {
        let remedy =
            "Take a range of its network, or give the interface an address in the network of the range first";
        problems.add(code::CONFLICT, "range_start", format!("Cannot be served: {reason}. {remedy}."));
    }
    if problems.is_empty() { Ok(()) } else { Err(EditError::Invalid(problems)) }
}

/// Searches for other servers if the settings enable the server on an interface where it does not serve yet.
pub(super) fn other_servers<'a>(
    open: &'a Open,
    draft: &State,
) -> Pin<Box<dyn Future<Output = Vec<Warning>> + Send + 'a>> {
    let (before, after) = (open.store.current().group::<DhcpConfig>(), draft.group::<DhcpConfig>());
    let is_new = !before.enabled || before.interface != after.interface;
    let interface = after.interface.filter(|_| after.enabled && is_new);
    Box::pin(async move {
        let Some(interface) = interface.filter(|_| open.worlds.last().attached.is_some()) else {
            return Vec::new();
        };
        let facts = open.worlds.last().facts.clone();
        match search(&facts, interface.as_str(), open.now()).await {
            Ok(found) => found.iter().map(warning).collect(),
            Err(error) => {
                tracing::warn!(%error, %interface, "failed to search for other DHCP servers");
                let message = format!("Other DHCP servers could not be searched: {error}.");
                vec![Warning::new("interface", message)]
            }
        }
    })
}

fn warning(server: &gateway_core::state_machines::dhcp::ForeignServer) -> Warning {
    let message =
        format!("{server}, too. Clients take an address from either server: switch one of them off.");
    Warning::new("interface", message)
}
