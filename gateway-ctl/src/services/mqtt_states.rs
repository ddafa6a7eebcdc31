//! States of the gateway at an MQTT broker: the verdict, each uplink, tunnel and active alert.
//!
//! Retained messages are a function of the states. What differs from the last ones is published; what is gone gets an
//! empty message, also if an earlier run has left it at the broker.

mod session;
mod snapshot;
mod test_message;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::notifications::home_assistant::{Identity, OFFLINE, messages};
use gateway_model::settings::groups::AlertMqtt;
use gateway_outbound::backoff::{Backoff, give_or_take_a_quarter};
use gateway_outbound::causes::with_causes;
use gateway_outbound::{Dialer, Egress, KernelSockets, Resolver, Targets};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use crate::handles::Handles;
use crate::service;
use crate::services::deliveries::{NotificationSource, egress};
use crate::store::Store;
use crate::supervise::blocking;
use crate::tls::{Client, Factory, with_authorities};
use crate::world::Worlds;
use session::{Session, SessionError, SessionOptions};

/// Interval at which the states are compared with those at the broker.
const PERIOD: Duration = Duration::from_secs(1);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(120));

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

type BrokerSession = Session<Box<dyn Stream>>;

/// States for a broker.
pub struct MqttStates {
    store: Arc<Store>,
    worlds: Arc<Worlds>,
    handles: Handles,
    source: Arc<dyn NotificationSource>,
    tls: Client,
    endpoint_names: Resolver,
}

impl MqttStates {
    pub fn new(
        store: Arc<Store>,
        worlds: Arc<Worlds>,
        handles: Handles,
        tls: &Arc<Factory>,
        endpoint_names: Resolver,
        source: Arc<dyn NotificationSource>,
    ) -> Arc<MqttStates> {
        Arc::new(MqttStates { store, worlds, handles, source, tls: tls.client("mqtt"), endpoint_names })
    }

    /// Returns the service that publishes the states.
    pub fn service(self: &Arc<Self>) -> service::Service {
        service::Service::new("mqtt_states", self, |states| states.run())
    }

    /// Runs until it is aborted.
    async fn run(self: Arc<Self>) {
        let mut revisions = self.store.watch();
        let mut failures = 0;
        loop {
            let config = self.config();
            if !config.enabled {
                failures = 0;
                if revisions.changed().await.is_err() {
                    return;
                }
                continue;
            }
            match self.converse(&config).await {
                // The settings have changed.
                Ok(()) => failures = 0,
                Err(error) => {
                    failures += 1;
                    tracing::warn!(host = config.host, error, "no session with the MQTT broker");
                    tokio::select! {
                        () = tokio::time::sleep(give_or_take_a_quarter(BACKOFF.after(failures))) => {}
                        changed = revisions.changed() => if changed.is_err() { return },
                    }
                }
            }
        }
    }

    fn config(&self) -> AlertMqtt {
        self.store.current().group()
    }

    /// Keeps a session until the settings change.
    async fn converse(&self, config: &AlertMqtt) -> Result<(), String> {
        let identity = self.identity(config);
        let egress = egress(&self.worlds.now(), &config.egress)?;
        let last_will = (identity.availability_topic(), OFFLINE);
        let mut session = self.open(config, client_id(&identity), Some(last_will), &egress).await?;
        tracing::info!(host = config.host, "session with the MQTT broker");
        let result = self.publish(&mut session, config, &identity, &egress).await;
        if result.is_ok() {
            session.close().await;
        }
        result.map_err(|error| with_causes(&error))
    }

    async fn open(
        &self,
        config: &AlertMqtt,
        client_id: String,
        last_will: Option<(String, &'static str)>,
        egress: &Egress,
    ) -> Result<BrokerSession, String> {
        let password = config.password.clone();
        let password = blocking(move || password.is_readable().then(|| password.expose().to_owned())).await;
        let password = password.ok_or("the password cannot be decrypted: set it again")?;
        let login = (!config.username.is_empty()).then(|| (config.username.clone(), password));
        let options = SessionOptions { client_id, login, last_will };
        let stream = tokio::time::timeout(CONNECT_TIMEOUT, self.connect(config, egress)).await;
        let stream = stream.map_err(|_| "no connection in time".to_owned())??;
        Session::open(stream, options).await.map_err(|error| with_causes(&error))
    }

    async fn connect(&self, config: &AlertMqtt, egress: &Egress) -> Result<Box<dyn Stream>, String> {
        let dialer = Dialer {
            sockets: &KernelSockets::QUICK,
            names: &self.endpoint_names,
            egress,
            targets: Targets::Any,
            timeout: CONNECT_TIMEOUT,
        };
        let dialed = dialer.connect(&config.host, config.port).await;
        let stream = dialed.map_err(|error| with_causes(&error))?;
        if !config.tls {
            return Ok(Box::new(stream));
        }
        let name =
            ServerName::try_from(config.host.clone()).map_err(|_| "the host has no valid name".to_owned())?;
        let tls = with_authorities(&self.tls, &config.ca_certificate)?;
        Ok(Box::new(tls.connect(name, stream).await.map_err(|error| with_causes(&error))?))
    }

    /// Publishes what changes until the settings change. Then removes everything: what
    /// the new settings want comes with the next session.
    async fn publish(
        &self,
        session: &mut BrokerSession,
        config: &AlertMqtt,
        identity: &Identity,
        begun_by: &Egress,
    ) -> Result<(), SessionError> {
        let mut published: BTreeMap<String, String> = BTreeMap::new();
        session.subscribe(&identity.filters()).await?;
        let mut last_ping = Instant::now();
        loop {
            if egress(&self.worlds.now(), &config.egress).as_ref() != Ok(begun_by) {
                return Err(SessionError::EgressGone);
            }
            let is_same = self.config() == *config;
            let wanted = if is_same { messages(&self.states().await, identity) } else { BTreeMap::new() };
            for topic in session.take_retained() {
                published.entry(topic).or_default();
            }
            synchronise(session, &mut published, wanted).await?;
            if !is_same {
                return Ok(());
            }
            if last_ping.elapsed() >= BrokerSession::PING_INTERVAL {
                session.ping().await?;
                last_ping = Instant::now();
            }
            tokio::time::sleep(PERIOD).await;
        }
    }
}

fn client_id(identity: &Identity) -> String {
    format!("gateway-{}", identity.node_id)
}

/// Publishes what differs, and removes what is not wanted.
async fn synchronise(
    session: &mut BrokerSession,
    published: &mut BTreeMap<String, String>,
    wanted: BTreeMap<String, String>,
) -> Result<(), SessionError> {
    let gone: Vec<String> = published.keys().filter(|topic| !wanted.contains_key(*topic)).cloned().collect();
    for topic in gone {
        session.publish(&topic, "").await?;
        published.remove(&topic);
    }
    for (topic, message) in wanted {
        if published.get(&topic) != Some(&message) {
            session.publish(&topic, &message).await?;
            published.insert(topic, message);
        }
    }
    Ok(())
}

impl std::fmt::Debug for MqttStates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MqttStates").finish_non_exhaustive()
    }
}
