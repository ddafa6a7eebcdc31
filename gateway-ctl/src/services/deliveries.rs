//! Deliveries of alerts to webhooks and by mail: notifications go through an outbox in the store, and each receiver gets
//! one at a time.
//!
//! A delivery is stored before it is sent, so that a restart loses none. When the store cannot be written, deliveries
//! are sent nevertheless: the disk that is full is an alert, too. Decision 0197 says why.

mod alert_source;
mod attempt;
mod egress;
mod email;
mod off;
mod outbox_loop;
mod resend;
mod send;
mod smtp_stream;
mod source;
mod stats;
mod target;
mod test_message;
mod webhook;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::health::{Check, Finding};
use gateway_core::notifications::outbox::{Changes, Outbox};
use gateway_core::notifications::receivers::{Receiver, is_on};
use gateway_core::notifications::{Sender, alertmanager_v2};
use gateway_model::settings::groups::WipeLevel;
use gateway_outbound::Resolver;
use ipnet::IpNet;
use tokio::sync::Mutex;

use crate::os::host_name;
use crate::service::{self, Health};
use crate::store::Store;
use crate::supervise::blocking;
use crate::tls::Factory;
use crate::world::{World, Worlds};
use email::MailSender;
use stats::Stats;
use webhook::WebhookSender;

pub(crate) use egress::egress;

pub use attempt::TestResult;
pub use source::{NotificationSource, SourceEvent};
pub use target::TargetError;

/// Deliveries of one gateway.
pub struct Deliveries {
    store: Arc<Store>,
    worlds: Arc<Worlds>,
    source: Arc<dyn NotificationSource>,
    webhooks: WebhookSender,
    mails: MailSender,
    /// `None` before the service has read the outbox, and after it was erased for good.
    kept: Mutex<Option<Kept>>,
    stats: Stats,
    resend_interval: Duration,
}

/// Outbox, and its changes that the store has not taken.
struct Kept {
    outbox: Outbox,
    unsaved: Changes,
}

impl Deliveries {
    pub fn new(
        store: Arc<Store>,
        worlds: Arc<Worlds>,
        tls: &Arc<Factory>,
        endpoint_names: Resolver,
        source: Arc<dyn NotificationSource>,
    ) -> Arc<Deliveries> {
        let interval = Duration::try_from(alertmanager_v2::RESEND_INTERVAL).unwrap_or_default();
        Self::with_resend_interval(store, worlds, tls, endpoint_names, source, interval)
    }

    /// Like [`Deliveries::new`], with another interval at which active alerts are sent again.
    pub fn with_resend_interval(
        store: Arc<Store>,
        worlds: Arc<Worlds>,
        tls: &Arc<Factory>,
        endpoint_names: Resolver,
        source: Arc<dyn NotificationSource>,
        resend_interval: Duration,
    ) -> Arc<Deliveries> {
        let webhooks = WebhookSender::new(tls, endpoint_names.clone());
        let mails = MailSender::new(tls, endpoint_names);
        let (kept, stats) = (Mutex::default(), Stats::default());
        Arc::new(Deliveries { store, worlds, source, webhooks, mails, kept, stats, resend_interval })
    }

    /// Returns the service that sends the notifications.
    pub fn service(self: &Arc<Self>) -> service::Service {
        let (measured, reported, erased) = (self.clone(), self.clone(), self.clone());
        service::Service::new("alert_deliveries", self, |deliveries| deliveries.run())
            .measures(move |registry| measured.stats.measure(registry))
            .reports(move || std::future::ready(reported.health()))
            .erases(move |level| erased.clone().erase(level))
    }

    /// Returns the health of the receivers; `None` while none is on.
    fn health(&self) -> Option<Health> {
        let state = self.store.current();
        let is_any_on = is_on(&state, Receiver::Webhook)
            || is_on(&state, Receiver::Email)
            || state.alert_rules.iter().any(|rule| is_on(&state, Receiver::RuleWebhook(rule.kind)));
        if !is_any_on {
            return None;
        }
        let failing = self.stats.failing(|receiver| is_on(&state, receiver));
        let finding = |(receiver, error): &(Receiver, String)| {
            Finding::alerts_not_delivered(&receiver.to_string(), error)
        };
        Some(Check::of("alert_deliveries", failing.iter().map(finding).collect(), "").into())
    }

    /// Forgets the deliveries, and what was notified. The store erases its tables itself.
    async fn erase(self: Arc<Self>, level: WipeLevel) -> io::Result<()> {
        let mut kept = self.kept.lock().await;
        if level == WipeLevel::Hard {
            *kept = None;
        }
        if let Some(kept) = &mut *kept {
            let cursor = kept.outbox.cursor();
            kept.unsaved = kept.outbox.reset(cursor);
        }
        Ok(())
    }

    /// Writes the changes of the outbox. Keeps them for the next time if the store cannot take them.
    async fn save(&self, kept: &mut Kept) {
        if kept.unsaved.is_empty() {
            return;
        }
        let (store, changes) = (self.store.clone(), std::mem::take(&mut kept.unsaved));
        let written = blocking(move || (store.write_notification_outbox(&changes), changes)).await;
        if let (Err(error), changes) = written {
            tracing::error!(%error, "failed to store the deliveries: a restart may repeat some");
            kept.unsaved = changes;
        }
    }
}

/// Returns the name and the URL of the gateway for its receivers.
pub(crate) fn sender(world: &World) -> Sender {
    let listen = &world.config.listen;
    let scheme = if world.config.tls.enabled { "https" } else { "http" };
    let url = |name: &String| format!("{scheme}://{name}:{}/", listen.api_addr.port());
    Sender { node: host_name::read(), url: listen.host_names.first().map(url).unwrap_or_default() }
}

/// Returns the networks of the LAN and all addresses of this host.
fn own_networks(world: &World) -> Vec<IpNet> {
    let addresses = world.facts.addresses.iter();
    let network = |(name, net): (&String, &IpNet)| match world.network.lan.contains(name) {
        true => net.trunc(),
        false => IpNet::from(net.addr()),
    };
    addresses.flat_map(|(name, nets)| nets.iter().map(move |net| (name, net))).map(network).collect()
}

impl std::fmt::Debug for Deliveries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deliveries").field("stats", &self.stats).finish_non_exhaustive()
    }
}
