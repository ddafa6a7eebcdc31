//! Engine of a membership: the device, the paths to peers, and the relays. It follows the last map until it is closed.

mod endpoints;
mod legs;
mod parts;
mod probe;
mod worker;

use std::sync::Arc;

use gateway_mesh::network_map::NetworkMap;
use gateway_mesh::paths::Paths;
use gateway_mesh::{DiscoKey, KeyPair, NodeKey};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::layer::Layer;
use super::membership::Membership;
use crate::services::mesh_link::LinkFacts;
use worker::Worker;

pub(super) use parts::{Announcement, EngineParts};

/// Messages that wait for the engine.
const QUEUE: usize = 1024;

/// A running engine.
pub(super) struct Engine {
    membership: Membership,
    disco_key: DiscoKey,
    maps: watch::Sender<NetworkMap>,
    announcements: watch::Receiver<Announcement>,
    close: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
    link: LinkFacts,
}

impl Engine {
    /// Starts an engine without a device, which comes with the first map. `None`: the system has no random numbers.
    pub(super) fn start(membership: Membership, parts: EngineParts) -> Option<Engine> {
        let disco = KeyPair::random().ok()?;
        let paths = Paths::new(disco, NodeKey(membership.node.public()));
        let disco_key = paths.disco_key();
        let (maps, maps_in) = watch::channel(NetworkMap::default());
        // A coordinator takes a request without prefixes as the end of the offer.
        let first = Announcement { routes: parts.offered(), ..Announcement::default() };
        let (announced, announcements) = watch::channel(first);
        let (close, closed) = oneshot::channel();
        let (events, events_in) = mpsc::channel(QUEUE);
        let layer = Arc::new(Layer::new(events.clone()));
        let link = parts.link.clone();
        let worker = Worker::new(&membership, parts, paths, layer, announced);
        let task = Some(tokio::spawn(worker.run(maps_in, (events, events_in), closed)));
        Some(Engine { membership, disco_key, maps, announcements, close: Some(close), task, link })
    }

    pub(super) fn membership(&self) -> &Membership {
        &self.membership
    }

    pub(super) fn disco_key(&self) -> DiscoKey {
        self.disco_key
    }

    pub(super) fn announcements(&self) -> watch::Receiver<Announcement> {
        self.announcements.clone()
    }

    /// Sets the map that the engine follows.
    pub(super) fn apply(&self, map: NetworkMap) {
        self.maps.send_replace(map);
    }

    /// Ends the engine, and waits until its interface is gone.
    pub(super) async fn close(mut self) {
        if let Some(close) = self.close.take() {
            // An engine that has ended needs no message.
            let _ = close.send(());
        }
        if let Some(task) = self.task.take() {
            let _ = task.await;
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            // The interface goes with the device.
            task.abort();
        }
        self.link.set(None);
    }
}
