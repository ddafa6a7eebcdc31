//! IPv6 of the LANs: the gateway announces itself, its resolver and the prefixes of the plan (RFC 4861), and takes IPv6
//! back from hosts that must not use it.
//!
//! Decision 0117 says why.

mod announcements;
mod announcer;
mod content;
mod metrics;
mod stateless;
mod stored;
mod withdrawal;

use std::io;
use std::time::Duration;

use gateway_common::link_protocol::LinkProtocol;
use gateway_core::router_advertisement::solicitation;
use gateway_model::settings::groups::WipeLevel;
use tokio::time::{MissedTickBehavior, interval, sleep_until};

use crate::os::json_file;
use crate::os::router_socket::RouterSocket;
use crate::service::{Context, Service};
use crate::services::link_frames::LinkFrames;
use crate::supervise::blocking;
pub(crate) use announcements::RouterAnnouncements;
use announcer::Announcer;

/// Interval of withdrawals: each takes back what another program has announced since the one before.
const WITHDRAWAL_INTERVAL: Duration = Duration::from_secs(3);
/// Pause after a failure of the socket.
const RETRY: Duration = Duration::from_secs(10);

/// Returns the services that announce the gateway and answer information requests.
pub(crate) fn services(context: &Context) -> [Service; 2] {
    let announcements = &context.handles.get::<RouterAnnouncements>();
    let (ended, measured) = (announcements.clone(), announcements.clone());
    let stored = stored::path(&context.worlds.in_force().config.state_dir);
    [
        Service::new("ipv6_lan", context, run)
            .measures(move |registry| metrics::register(registry, measured.counters()))
            .erases(move |level| {
                let stored = stored.clone();
                blocking(move || match level {
                    WipeLevel::Soft => Ok(()),
                    WipeLevel::Medium | WipeLevel::Hard => json_file::erase(&stored),
                })
            })
            .releases(move || blocking(move || ended.end())),
        Service::new("dhcp6_server", context, stateless::run),
    ]
}

/// Runs until it is aborted.
async fn run(context: Context) {
    let mut announcer = Announcer::new(&context, context.handles.get::<RouterAnnouncements>()).await;
    loop {
        if let Err(error) = follow(&context, &mut announcer).await {
            tracing::warn!(%error, "failed to send router advertisements");
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn follow(context: &Context, announcer: &mut Announcer) -> io::Result<()> {
    let socket = RouterSocket::open()?;
    let frames = context.handles.get::<LinkFrames>();
    let (mut revisions, mut worlds) = (context.store.watch(), context.worlds.watch());
    let mut ticks = interval(WITHDRAWAL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let mut withdraws = false;
        let due = announcer.deadline();
        let wait = async move {
            match due {
                Some(due) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = frames.arrived(LinkProtocol::RouterSolicitation) => {}
            () = wait => {}
            _ = ticks.tick() => withdraws = true,
            changed = revisions.changed() => match changed {
                Ok(()) => withdraws = true,
                Err(_) => return Ok(()),
            },
            changed = worlds.changed() => if changed.is_err() { return Ok(()) },
        }
        let world = context.worlds.now();
        for arrival in frames.take(LinkProtocol::RouterSolicitation) {
            if solicitation::parse(&arrival.packet).is_some() {
                announcer.handle_solicitation(arrival.interface);
            }
        }
        announcer.update(&world);
        let announced = announcer.announce(&socket).await;
        if withdraws || announced {
            announcer.withdraw(&socket, &world);
        }
    }
}
