//! The TUN devices of single peers that run, with their tasks.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::peer_tun::{PeerTun, PeerTunConfig, PeerTuns};
use super::shared::Shared;
use super::sockets::Sockets;
use super::transmit;
use super::tun::open_tun;

/// A TUN device with its task.
struct Running {
    config: PeerTunConfig,
    tun: Arc<PeerTun>,
    task: JoinSet<()>,
}

/// The TUN devices of single peers that one device has, by name.
#[derive(Default)]
pub(super) struct RunningTuns {
    by_name: BTreeMap<String, Running>,
}

impl RunningTuns {
    /// Brings the devices to what is wanted: first those end that nothing wants, then new ones begin. Returns the first failure;
    /// the other devices are as wanted.
    pub(super) async fn change(
        &mut self,
        wanted: &[PeerTunConfig],
        shared: &Arc<Shared>,
        sockets: &Arc<Sockets>,
    ) -> io::Result<()> {
        let is_wanted = |running: &Running| {
            let same = |config: &&PeerTunConfig| config.name == running.config.name;
            wanted.iter().find(same).is_some_and(|config| {
                (config.public_key, config.mtu) == (running.config.public_key, running.config.mtu)
            })
        };
        // A task ends by itself once others have removed the link.
        let gone = self
            .by_name
            .extract_if(.., |_, running| running.task.try_join_next().is_some() || !is_wanted(running));
        let gone: Vec<Running> = gone.map(|(_, running)| running).collect();
        self.publish(shared);
        for running in gone {
            close(running).await;
        }
        let mut failure = Ok(());
        for config in wanted {
            if let Some(running) = self.by_name.get_mut(&config.name) {
                if running.config.networks != config.networks {
                    running.tun.set_networks(&config.networks);
                    running.config = config.clone();
                }
                continue;
            }
            match start(config, shared, sockets) {
                Ok(running) => _ = self.by_name.insert(config.name.clone(), running),
                Err(error) => failure = failure.and(Err(error)),
            }
        }
        self.publish(shared);
        failure
    }

    /// Starts the tasks again, with other sockets.
    pub(super) async fn restart(&mut self, shared: &Arc<Shared>, sockets: &Arc<Sockets>) {
        for running in self.by_name.values_mut() {
            running.task.shutdown().await;
            running.task = run(&running.tun, running.config.mtu, shared, sockets);
        }
    }

    /// Ends all devices.
    pub(super) async fn close(&mut self, shared: &Shared) {
        let all = std::mem::take(&mut self.by_name);
        self.publish(shared);
        for running in all.into_values() {
            close(running).await;
        }
    }

    fn publish(&self, shared: &Shared) {
        let tuns: PeerTuns = self.by_name.values().map(|it| (it.tun.key, Arc::clone(&it.tun))).collect();
        shared.peer_tuns.store(Arc::new(tuns));
    }
}

fn start(config: &PeerTunConfig, shared: &Arc<Shared>, sockets: &Arc<Sockets>) -> io::Result<Running> {
    let tun = Arc::new(PeerTun::new(config, open_tun(&config.name, config.mtu)?));
    let task = run(&tun, config.mtu, shared, sockets);
    Ok(Running { config: config.clone(), tun, task })
}

fn run(tun: &Arc<PeerTun>, mtu: u16, shared: &Arc<Shared>, sockets: &Arc<Sockets>) -> JoinSet<()> {
    let mut task = JoinSet::new();
    task.spawn(transmit::packets(Arc::clone(shared), Arc::clone(sockets), mtu, Some(Arc::clone(tun))));
    task
}

async fn close(mut running: Running) {
    running.task.shutdown().await;
    // Closing the descriptor takes the link down, which waits for the kernel's grace periods.
    let closing = tokio::task::spawn_blocking(move || drop(running));
    if let Err(error) = closing.await {
        tracing::warn!(%error, "failed to close a TUN device");
    }
}
