//! IPv6 of the LANs: the gateway announces itself, its resolver and the prefixes of the plan (RFC 4861), and takes IPv6
//! back from hosts that must not use it.

mod announcements;
mod announcer;
mod content;
pub mod stateless;
mod stored;
mod withdrawal;

use std::io;
use std::time::Duration;

use gateway_core::router_advertisement::solicitation;
use tokio::time::{MissedTickBehavior, interval, sleep_until};

use crate::os::readable;
use crate::os::router_socket::RouterSocket;
use crate::service::Context;
pub use announcements::{AnnouncementCounters, RouterAnnouncements};
use announcer::Announcer;

/// Interval of withdrawals: each takes back what another program has announced since the one before.
const WITHDRAWAL_INTERVAL: Duration = Duration::from_secs(3);
/// Solicitations that are read at a time.
const BATCH: usize = 256;
/// Pause after a failure of the socket.
const RETRY: Duration = Duration::from_secs(10);

/// Runs until it is aborted.
pub async fn run(context: Context, announcements: RouterAnnouncements) {
    let mut announcer = Announcer::new(&context, announcements).await;
    loop {
        if let Err(error) = follow(&context, &mut announcer).await {
            tracing::warn!(%error, "failed to send router advertisements");
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn follow(context: &Context, announcer: &mut Announcer) -> io::Result<()> {
    let socket = RouterSocket::open(solicitation::TYPE)?;
    let watched = readable::watch(socket.descriptor())?;
    let (mut revisions, mut worlds) = (context.store.watch(), context.worlds.watch());
    let mut ticks = interval(WITHDRAWAL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut buffer = Vec::new();
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
            ready = watched.readable() => ready?.clear_ready(),
            () = wait => {}
            _ = ticks.tick() => withdraws = true,
            changed = revisions.changed() => match changed {
                Ok(()) => withdraws = true,
                Err(_) => return Ok(()),
            },
            changed = worlds.changed() => if changed.is_err() { return Ok(()) },
        }
        let world = context.worlds.now();
        for _ in 0..BATCH {
            let Some(arrival) = socket.next(&mut buffer)? else { break };
            if solicitation::parse(&buffer).is_some() {
                announcer.handle_solicitation(arrival);
            }
        }
        announcer.update(&world);
        let announced = announcer.announce(&socket).await;
        if withdraws || announced {
            announcer.withdraw(&socket, &world);
        }
    }
}
