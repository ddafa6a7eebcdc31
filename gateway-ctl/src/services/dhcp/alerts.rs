//! Alerts of the DHCP server: other servers, addresses in use by two hosts, and pools without free addresses.

use gateway_core::state_machines::dhcp::{ForeignServer, PoolUsage};
use gateway_model::State;
use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::settings::groups::DhcpConfig;
use jiff::Timestamp;

use super::handle::{DhcpServer, exhausted};
use super::names::own_names;
use super::search::is_own;
use crate::os::host_name;
use crate::services::active_alerts::ActiveAlerts;
use crate::world::World;

/// Percentage of addresses in use from which a pool counts as exhausted, if its rule does not say so.
const THRESHOLD: f64 = 95.0;

/// Raises and ends the alerts.
pub(super) fn publish(
    dhcp: &DhcpServer,
    alerts: &ActiveAlerts,
    state: &State,
    World { facts, config, .. }: &World,
    now: Timestamp,
) {
    let domain = &state.group::<DhcpConfig>().domain;
    let own = own_names(&config.listen.host_names, &host_name::read(), domain);
    let servers = dhcp.foreign_servers();
    let subject = |server: &ForeignServer| format!("{}%{}", server.address, server.interface);
    for server in &servers {
        let message = match is_own(facts, server.address) {
            true => format!(
                "a host on {} claims to be the DHCP server of this gateway: {server}",
                server.interface
            ),
            false => server.to_string(),
        };
        alerts.raise_until(AlertKind::RogueDhcp, &subject(server), server.until(), message);
    }
    // A server that the last run heard may be there until its time is over.
    alerts.keep(AlertKind::RogueDhcp, |known| servers.iter().any(|server| subject(server) == known));

    let rule = state.alert_rules.iter().find(|rule| rule.kind == AlertKind::DhcpPoolExhausted);
    let threshold = rule.map_or(THRESHOLD, |rule| rule.threshold);
    let pools: Vec<PoolUsage> = dhcp.pools().into_iter().filter(|pool| pool.percent() >= threshold).collect();
    for pool in &pools {
        let message = if pool.free == 0 {
            exhausted(pool)
        } else {
            format!("{} of {} addresses are free on {}", pool.free, pool.size, pool.name)
        };
        alerts.raise(AlertKind::DhcpPoolExhausted, &pool.name, message);
    }
    alerts.keep(AlertKind::DhcpPoolExhausted, |known| pools.iter().any(|pool| pool.name == known));

    let claims = dhcp.claims_of_names(&own, now);
    for (name, mac) in &claims {
        let message = format!("the DHCP client {mac} calls itself {name:?}, which is a name of this gateway");
        alerts.raise(AlertKind::IpConflict, name, message);
    }
    let declined = dhcp.declined(now);
    for address in &declined {
        let message = format!("{address} is in use by another host than the one it was meant for");
        alerts.raise(AlertKind::IpConflict, &address.to_string(), message);
    }
    alerts.keep(AlertKind::IpConflict, |known| {
        declined.iter().any(|address| address.to_string() == known) || claims.contains_key(known)
    });
}
