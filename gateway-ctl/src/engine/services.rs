//! List of the engine's services. Each service appears once.
//!
//! Services end in reverse order: first the observers, then the reconcile loop, last the tunnels and relays that
//! carry packets.

use tokio::task::JoinHandle;

use super::{attachments, waking};
use crate::panics;
use crate::service::{Context, Service};
use crate::services::{
    access_point, auto_rollback, bluetooth, bridges, captures, conntrack, countries, dhcp, dhcp_clients,
    encrypted_storage, endings, events, failover_reset, fast_path, flow_check, flow_log, flow_rate,
    foreign_routers, gateway_verdict, guard_tap, history, hosts, ipv6_lan, kernel_tables, link_frames,
    mesh_link, moved_flows, neighbour_room, open_files, plan_history, prefix_delegation, proxies, quic_names,
    storage, time_server, tunnels, uplinks, world_alerts,
};
use crate::supervise::joined;

/// Returns the services. `looping` is the task of the reconcile loop.
pub(super) fn list(context: &Context, looping: JoinHandle<()>) -> Vec<Service> {
    let openvpn = context.engines.openvpn.clone();
    let mut services = vec![open_files::report(), encrypted_storage::service(context)];
    services.extend(kernel_tables::reports(&context.dataplane));
    services.extend([
        Service::idle("openvpn").releases(move || async move { openvpn.stop().await }),
        bridges::service(context),
        tunnels::service(context),
        proxies::service(context),
        Service::vital("reconcile_loop", joined(looping)),
        uplinks::service(context),
        dhcp_clients::service(context),
        bluetooth::service(context),
        access_point::service(context),
        Service::new("store_changes", context, waking::on_change),
        Service::new("panic_wake", context, |context| waking::on_panic(context, panics::watch())),
        Service::new("attachments", context, attachments::watch),
        events::service(context),
        fast_path::service(context),
        guard_tap::service(context),
        prefix_delegation::service(context),
        mesh_link::service(context),
    ]);
    services.push(link_frames::service(context));
    services.extend(ipv6_lan::services(context));
    services.extend([
        time_server::service(context),
        Service::new("quic_names", context, quic_names::run),
        foreign_routers::service(context),
        dhcp::service(context),
    ]);
    services.extend(hosts::services(context));
    services.extend([
        captures::service(context),
        gateway_verdict::service(context),
        history::service(context),
        plan_history::service(context),
        countries::service(context),
        flow_log::service(context),
        flow_check::service(context),
        Service::new("commit_confirm", &context.store, auto_rollback::run),
        Service::new("exception_ends", context, endings::run),
        flow_rate::service(context),
        Service::new("orphaned_flows", context, failover_reset::run),
        Service::new("conntrack", context, conntrack::run),
        Service::new("neighbour_room", context, neighbour_room::run),
        Service::new("moved_flows", context, moved_flows::run),
        Service::new("storage_alert", context, storage::run),
        world_alerts::service(context),
    ]);
    services
}
