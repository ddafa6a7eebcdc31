//! Fast path of the federation: a session with a hub, over which this gateway publishes its kinds and gets those of the
//! nodes that it follows.
//!
//! The hub is not trusted. What it hands on is signed, verified and authorised as a reply to a pull is, and pulls go on
//! beside it, so that a hub that is dead or withholds messages delays changes and loses none. Decision 0209 says why.

mod arrive;
mod connect;
mod publish;
mod session;
pub(super) mod status;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::federation::bus::hub::{self, HubOptions, last_of};
use gateway_core::federation::bus::publication::subject;
use gateway_model::Id;
use gateway_model::kinds::SyncKind;
use gateway_model::settings::groups::FederationBus;
use gateway_model::validated::PublicKey;
use gateway_outbound::backoff::{Backoff, give_or_take_a_quarter};
use gateway_outbound::causes::with_causes;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::Federation;
use super::events::EventKind;
use super::identity::Identity;
use crate::service;
use crate::supervise::blocking;
use connect::Connection;
use publish::Published;
use session::{Session, SessionError};
use status::BusStatus;

const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// Time in which changes of the store are collected, so that many edits are one publication.
const COALESCE: Duration = Duration::from_millis(50);

/// Kind of a node that this gateway follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Followed {
    node: Id,
    key: PublicKey,
    kind: SyncKind,
}

impl Federation {
    /// Returns the service of the hub.
    pub fn bus_service(self: &Arc<Self>) -> service::Service {
        let measured = self.clone();
        service::Service::new("federation_bus", self, |federation| async move {
            tokio::select! {
                () = federation.keep_session() => {}
                () = federation.take_arrivals() => {}
            }
        })
        .measures(move |registry| measured.bus.measure(registry))
    }

    /// Returns the state of the session with the hub.
    pub fn bus_status(&self) -> BusStatus {
        self.bus.status()
    }

    /// Returns the configuration of a hub for this gateway and its nodes. `None` until the first exchange makes a key. May
    /// open the secret of the key.
    pub fn hub_configuration(&self, options: &HubOptions) -> Option<String> {
        let state = self.store.current();
        let key = Identity::of(&state)?.public_key();
        Some(hub::configuration(&state, key, options))
    }

    fn bus_config(&self) -> FederationBus {
        self.store.current().group()
    }

    /// Keeps a session with the hub while the settings have one. Ends with the store.
    async fn keep_session(self: &Arc<Self>) {
        let mut revisions = self.store.watch();
        let mut failures = 0;
        loop {
            let config = self.bus_config();
            if !config.enabled {
                failures = 0;
                self.bus.turn_off();
                if revisions.changed().await.is_err() {
                    return;
                }
                continue;
            }
            self.bus.begin();
            let Err(error) = self.converse(&config).await else {
                // The settings or the nodes have changed.
                failures = 0;
                continue;
            };
            failures = if self.bus.is_connected() { 1 } else { failures + 1 };
            self.report_lost(&config, &error);
            let pause = sleep(give_or_take_a_quarter(BACKOFF.after(failures)));
            tokio::pin!(pause);
            loop {
                tokio::select! {
                    () = &mut pause => break,
                    changed = revisions.changed() => {
                        if changed.is_err() {
                            return;
                        }
                        if self.bus_config() != config {
                            break;
                        }
                    }
                }
            }
        }
    }

    fn report_lost(&self, config: &FederationBus, error: &str) {
        let was_connected = self.bus.is_connected();
        if self.bus.fail(self.store.clock().now(), error) {
            tracing::warn!(url = config.url, error, "no session with the hub of the federation");
        }
        if was_connected {
            let message = format!("The session with the hub has ended: {error}. Changes are pulled.");
            self.events.push(self.store.clock().now(), EventKind::BusLost, None, String::new(), message);
        }
    }

    /// Keeps one session until the settings or the nodes change.
    async fn converse(self: &Arc<Self>, config: &FederationBus) -> Result<(), String> {
        let mut revisions = self.store.watch();
        let state = self.store.current();
        let identity = blocking(move || Identity::of(&state)).await;
        let identity = identity.ok_or("this gateway has no key yet: exchange keys with a node first")?;
        let followed = self.followed();
        let Connection { mut session, greeting } = self.connect_bus(config, &identity).await?;
        let now = self.store.clock().now();
        self.bus.connect(now, &greeting.version);
        let message = "A session with the hub has begun.".to_owned();
        self.events.push(now, EventKind::BusConnected, None, String::new(), message);
        tracing::info!(
            url = config.url,
            version = greeting.version,
            "session with the hub of the federation"
        );
        let is_same = || {
            self.bus_config() == *config
                && self.followed() == followed
                && self.own_key() == Some(identity.public_key())
        };
        let work = async {
            let subscriptions = self.follow(&mut session, &followed).await?;
            let mut published = Published::default();
            let mut ping = interval(PING_INTERVAL);
            ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                let count = self.publish_changes(&mut session, greeting.max_payload, &mut published).await?;
                self.bus.count_published(count);
                self.bus.deny(session.denied.as_deref());
                while let Some(message) = session.take().await? {
                    if let Some(Followed { node, kind, .. }) = subscriptions.get(&message.subscription) {
                        self.arrived(*node, *kind, &message.payload);
                    }
                }
                tokio::select! {
                    filled = session.fill() => filled?,
                    _ = ping.tick() => session.ping().await?,
                    changed = revisions.changed() => {
                        if changed.is_err() || !is_same() {
                            return Ok(());
                        }
                        sleep(COALESCE).await;
                    }
                }
            }
        };
        work.await.map_err(|error: SessionError| with_causes(&error))
    }

    /// Subscribes to the kinds, and takes the last message of each. In this order, none is missed between both.
    async fn follow(
        &self,
        session: &mut Session,
        followed: &[Followed],
    ) -> Result<BTreeMap<u64, Followed>, SessionError> {
        let mut subscriptions = BTreeMap::new();
        for of in followed {
            let id = session.subscribe(&subject(of.kind, of.key)).await?;
            subscriptions.insert(id, *of);
        }
        for of in followed {
            let last = session.request(&last_of(&subject(of.kind, of.key)), b"").await;
            match last {
                // No message, or no stream yet.
                Ok(last) if last.status.is_some() => {}
                Ok(last) => self.arrived(of.node, of.kind, &last.payload),
                // The hub denies this kind: it is pulled.
                Err(SessionError::Refused(_)) if session.denied.is_some() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(subscriptions)
    }

    /// Returns the kinds of nodes that this gateway follows.
    fn followed(&self) -> Vec<Followed> {
        let state = self.store.current();
        let mut followed = Vec::new();
        for node in state.nodes.iter() {
            let Some(key) = node.public_key else { continue };
            let kinds = node.received_kinds(&state).into_iter();
            followed.extend(kinds.map(|kind| Followed { node: node.meta.id, key, kind }));
        }
        followed
    }
}
