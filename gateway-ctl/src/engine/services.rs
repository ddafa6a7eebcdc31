//! List of the engine's services. Each service appears once.
//!
//! Services end in reverse order: first the observers, then the reconcile loop, last the tunnels and relays that
//! carry packets.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::waking::ReportReceivers;
use super::{attachments, waking};
use crate::os::observe::KernelChanges;
use crate::os::openvpn::OpenVpn;
use crate::os::transport::Transports;
use crate::panics;
use crate::service::{Context, Service};
use crate::services::dhcp::{self, DhcpServer};
use crate::services::dhcp_clients::{self, DhcpControl, DhcpStates};
use crate::services::events::{self, Recent};
use crate::services::fast_path;
use crate::services::flow_rate::{self, FlowRates};
use crate::services::foreign_routers::{self, ForeignRouters};
use crate::services::gateway_verdict::{self, Verdicts};
use crate::services::guard_tap::{self, Escapes};
use crate::services::history::{self, History};
use crate::services::hosts::{self, HostInventory, Sources};
use crate::services::ipv6_lan::RouterAnnouncements;
use crate::services::prefix_delegation::Delegations;
use crate::services::proxies::{Proxies, ProxyStates};
use crate::services::time_server::TimeServer;
use crate::services::tunnels::{TunnelStates, Tunnels};
use crate::services::uplinks::{self, UplinkStates};
use crate::services::{
    auto_rollback, conntrack, endings, failover_reset, ipv6_lan, kernel_tables, moved_flows, neighbour_room,
    open_files, prefix_delegation, quic_names, storage, time_server,
};
use crate::supervise::{blocking, joined};

/// Parts of the engine that services drive.
pub(super) struct Parts {
    pub looping: JoinHandle<()>,
    pub openvpn: Arc<OpenVpn>,
    pub transports: Arc<Transports>,
    pub tunnels: (Tunnels, watch::Receiver<Arc<TunnelStates>>),
    pub proxies: (Proxies, watch::Receiver<Arc<ProxyStates>>),
    pub recent: Recent,
    pub turns: FlowRates,
    pub escapes: Escapes,
    pub routers: ForeignRouters,
    pub verdicts: Verdicts,
    pub history: History,
    pub dhcp: DhcpServer,
    pub dhcp_clients: DhcpControl,
    pub announcements: RouterAnnouncements,
    pub hosts: HostInventory,
    pub kernel_changes: watch::Receiver<KernelChanges>,
}

pub(super) fn list(context: &Context, parts: Parts) -> Vec<Service> {
    let Parts {
        looping,
        openvpn,
        transports,
        tunnels,
        proxies,
        recent,
        turns,
        escapes,
        routers,
        verdicts,
        history,
        dhcp,
        dhcp_clients,
        announcements,
        hosts,
        kernel_changes,
    } = parts;
    let counted = escapes.clone();
    let (announced, served, farewells) = (announcements.clone(), announcements.clone(), announcements);
    let (watcher, tunnels) = tunnels;
    let (proxy_watcher, proxies) = proxies;
    let (uplink_states, uplinks) = watch::channel(Arc::<UplinkStates>::default());
    let (client_states, leases) = watch::channel(Arc::<DhcpStates>::default());
    let reports = ReportReceivers {
        tunnels: tunnels.clone(),
        proxies: proxies.clone(),
        transports: transports.states(),
        uplinks: uplinks.clone(),
        dhcp_clients: leases.clone(),
        leased_names: dhcp.names(),
        hosts: hosts.present(),
    };
    let (leasing, hosts_dhcp, hosts_recent) = (dhcp.clone(), dhcp.clone(), recent.clone());
    let (stored_hosts, measured_hosts) = (hosts.clone(), hosts.clone());
    let connections = transports.states();
    let (worlds, delegating) = (context.worlds.clone(), context.worlds.clone());
    let state_dir = &context.worlds.in_force().config.state_dir;
    let delegations = Delegations::stored(state_dir, context.store.clock().now());
    let fast_path = context.dataplane.fast_path().clone();
    let time = TimeServer::default();
    let watched_time = time.clone();
    let [kernel_tables, flow_table, fast_path_table] = kernel_tables::reports(&context.dataplane);
    let (contributed, reported) = (delegations.clone(), delegations.clone());
    vec![
        open_files::report(),
        kernel_tables,
        flow_table,
        fast_path_table,
        Service::idle("openvpn").releases(move || async move { openvpn.stop().await }),
        Service::idle("bridges").contributes(move |facts| transports.enrich(facts)),
        Service::vital("tunnel_watcher", watcher.run(context.wake.clone()))
            .contributes(move |facts| tunnels.borrow().enrich(facts)),
        Service::vital("proxy_watcher", proxy_watcher.run(context.wake.clone()))
            .contributes(move |facts| proxies.borrow().enrich(facts)),
        Service::vital("reconcile_loop", joined(looping)),
        Service::new("uplinks", context, move |context| uplinks::run(context, uplink_states.clone()))
            .contributes(move |facts| uplinks.borrow().enrich(facts)),
        Service::new("dhcp_clients", context, move |context| {
            dhcp_clients::run(context, dhcp_clients.clone(), client_states.clone())
        })
        .contributes(move |facts| leases.borrow().enrich(facts)),
        Service::new("store_changes", context, waking::on_change),
        Service::new("bridge_changes", context, move |context| {
            waking::on_connections(context, connections.clone())
        }),
        Service::new("panic_wake", context, |context| waking::on_panic(context, panics::watch())),
        Service::new("attachments", context, attachments::watch),
        Service::new("world_reports", context, move |context| {
            waking::publish_reports(context, reports.clone())
        }),
        Service::new("dataplane_events", context, move |context| events::run(context, recent.clone())),
        Service::new("fast_path", context, fast_path::run)
            .releases(move || blocking(move || fast_path::end(&fast_path))),
        Service::new("guard_tap", context, move |context| guard_tap::run(context, escapes.clone())),
        Service::new("prefix_delegation", context, move |context| {
            prefix_delegation::run(context, delegations.clone())
        })
        .contributes(move |facts| contributed.enrich(facts))
        .reports(move || std::future::ready(reported.health(&delegating))),
        Service::new("ipv6_lan", context, move |context| ipv6_lan::run(context, announced.clone()))
            .releases(move || blocking(move || farewells.end())),
        Service::new("dhcp6_server", context, move |context| {
            ipv6_lan::stateless::run(context, served.clone())
        }),
        Service::new("time_server", context, move |context| time_server::run(context, time.clone())).reports(
            move || {
                let (server, worlds) = (watched_time.clone(), worlds.clone());
                blocking(move || server.health(&worlds))
            },
        ),
        Service::new("quic_names", context, quic_names::run),
        Service::new("foreign_routers", context, move |context| {
            foreign_routers::run(context, routers.clone())
        }),
        Service::new("dhcp_server", context, move |context| dhcp::run(context, dhcp.clone())).reports(
            move || {
                let leasing = leasing.clone();
                blocking(move || leasing.health())
            },
        ),
        Service::new("hosts", context, move |context| {
            let (neighbours, dhcp, recent) =
                (kernel_changes.clone(), hosts_dhcp.clone(), hosts_recent.clone());
            hosts::run(context, hosts.clone(), Sources { neighbours, dhcp, recent })
        })
        .releases(move || blocking(move || hosts::store_at_end(&stored_hosts))),
        Service::new("host_rates", context, move |context| {
            hosts::measure::run(context, measured_hosts.clone())
        }),
        Service::new("gateway_verdict", context, move |context| {
            gateway_verdict::run(context, counted.clone(), verdicts.clone())
        }),
        Service::new("history", context, move |context| history::run(context, history.clone())),
        Service::new("commit_confirm", &context.store, auto_rollback::run),
        Service::new("exception_ends", context, endings::run),
        Service::new("flow_rates", context, move |context| flow_rate::run(context, turns.clone())),
        Service::new("orphaned_flows", context, failover_reset::run),
        Service::new("conntrack", context, conntrack::run),
        Service::new("neighbour_room", context, neighbour_room::run),
        Service::new("moved_flows", context, moved_flows::run),
        Service::new("storage_alert", context, storage::run),
    ]
}
