//! Records of the flow log for collectors: IPFIX, syslog and OpenTelemetry.
//!
//! The flow log itself is what waits: each collector has a cursor in it, which moves on when the collector has taken the
//! records. A collector that is away gets them later, as long as the flow log keeps them; a record may arrive twice.

mod connection;
mod cursors;
mod ipfix;
mod otlp;
mod session;
mod stats;
mod syslog;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use gateway_model::settings::groups::{FlowExport, OtlpCollector, WipeLevel};
use gateway_outbound::Resolver;
use gateway_outbound::backoff::{Backoff, give_or_take_a_quarter};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::handles::Handles;
use crate::os::host_name;
use crate::service;
use crate::services::flow_log::FlowLog;
use crate::store::Store;
use crate::supervise::blocking;
use crate::tls::{Client, Factory};
use crate::world::Worlds;
use connection::Identity;
use cursors::Cursors;
use session::Session;
use stats::Stats;

pub use stats::{Collector, CollectorState, CollectorStatus};

/// Interval at which new records are looked for.
const PERIOD: Duration = Duration::from_secs(1);
/// Maximum number of records in one piece.
const PIECE: usize = 500;
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));

/// Page of `/metrics`.
pub type MetricsPage = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Option<String>> + Send>> + Send + Sync>;

/// Exports of one gateway.
pub struct FlowExports {
    store: Arc<Store>,
    worlds: Arc<Worlds>,
    log: FlowLog,
    tls: Client,
    endpoint_names: Resolver,
    cursors: Mutex<Cursors>,
    stats: Stats,
}

impl FlowExports {
    pub fn new(
        store: Arc<Store>,
        worlds: Arc<Worlds>,
        handles: &Handles,
        tls: &Arc<Factory>,
        endpoint_names: Resolver,
    ) -> Arc<FlowExports> {
        let state_dir = worlds.last().config.state_dir.clone();
        Arc::new(FlowExports {
            store,
            worlds,
            log: handles.get(),
            tls: tls.client("flow export"),
            endpoint_names,
            cursors: Mutex::new(Cursors::open(&state_dir)),
            stats: Stats::default(),
        })
    }

    /// Returns the service that sends the records. `metrics` is for collectors of metrics.
    pub fn service(self: &Arc<Self>, metrics: MetricsPage) -> service::Service {
        let (measured, erased) = (self.clone(), self.clone());
        service::Service::new("flow_export", &(self.clone(), metrics), |(exports, metrics)| {
            exports.run(metrics)
        })
        .measures(move |registry| measured.stats.measure(registry, &measured.states()))
        .erases(move |level| erased.clone().erase(level))
    }

    /// Returns what each collector has got.
    pub fn states(&self) -> Vec<CollectorState> {
        let config = self.config();
        let next = self.log.next_id();
        let waiting =
            |collector| self.cursors.lock().get(collector).map(|cursor| next.saturating_sub(cursor));
        Collector::ALL
            .iter()
            .map(|collector| {
                let waiting = gets_records(&config, *collector).then(|| waiting(*collector)).flatten();
                self.stats.state(*collector, is_on(&config, *collector), waiting)
            })
            .collect()
    }

    fn config(&self) -> FlowExport {
        self.store.current().group()
    }

    /// Runs until it is aborted.
    async fn run(self: Arc<Self>, metrics: MetricsPage) {
        self.cursors.lock().bound(self.log.next_id());
        tokio::join!(
            self.follow(Collector::Ipfix),
            self.follow(Collector::Syslog),
            self.follow(Collector::Otlp),
            self.push_metrics(metrics),
        );
    }

    /// Keeps one collector supplied.
    async fn follow(&self, collector: Collector) {
        let mut revisions = self.store.watch();
        let mut failures = 0;
        loop {
            let config = self.config();
            if !gets_records(&config, collector) {
                failures = 0;
                if !is_on(&config, collector) {
                    self.stats.off(collector);
                }
                self.cursors.lock().forget(collector);
                if revisions.changed().await.is_err() {
                    return;
                }
                continue;
            }
            let before = self.stats.sent(collector);
            match self.supply(collector, &config, &mut revisions).await {
                // The settings have changed.
                Ok(()) => failures = 0,
                Err(error) => {
                    failures = if self.stats.sent(collector) > before { 1 } else { failures + 1 };
                    tracing::warn!(%collector, error, "the collector did not take flow records");
                    self.stats.failed(collector, error);
                    tokio::select! {
                        () = tokio::time::sleep(give_or_take_a_quarter(BACKOFF.after(failures))) => {}
                        changed = revisions.changed() => if changed.is_err() { return },
                    }
                }
            }
        }
    }

    /// Sends what comes until the settings change.
    async fn supply(
        &self,
        collector: Collector,
        config: &FlowExport,
        revisions: &mut watch::Receiver<u64>,
    ) -> Result<(), String> {
        // What comes before the first session is the collector's, too.
        let mut cursor = self.cursors.lock().begin(collector, self.log.next_id());
        self.advance(collector, cursor).await;
        let mut session = self.session(collector, config).await?;
        if session.is_connected() {
            self.stats.connected(collector);
        }
        while self.config() == *config {
            let log = self.log.clone();
            let piece = blocking(move || log.after(cursor, PIECE)).await;
            self.stats.lost(collector, piece.lost);
            session.send(&piece.records, self.store.clock().now()).await?;
            cursor = piece.next;
            self.stats.took(collector, piece.records.len(), self.store.clock().now());
            let is_last = piece.records.len() < PIECE;
            self.advance(collector, cursor).await;
            if is_last {
                tokio::select! {
                    () = tokio::time::sleep(PERIOD) => {}
                    changed = revisions.changed() => if changed.is_err() { return Ok(()) },
                }
            }
        }
        Ok(())
    }

    /// Sends the metrics periodically, until it is aborted.
    async fn push_metrics(&self, page: MetricsPage) {
        let mut revisions = self.store.watch();
        let mut pushed: Option<Instant> = None;
        loop {
            let config = self.config().otlp;
            let is_on = config.enabled && config.metrics;
            let interval = Duration::from_secs(config.metrics_interval_sec);
            let due = pushed.map_or_else(Instant::now, |pushed| pushed + interval);
            tokio::select! {
                () = tokio::time::sleep_until(due), if is_on => {
                    pushed = Some(Instant::now());
                    match self.push(&config, &page).await {
                        Ok(()) => self.stats.pushed(),
                        Err(error) => {
                            tracing::warn!(error, "the collector did not take metrics");
                            self.stats.failed(Collector::Otlp, error);
                        }
                    }
                }
                changed = revisions.changed() => if changed.is_err() { return },
            }
        }
    }

    async fn push(&self, config: &OtlpCollector, page: &MetricsPage) -> Result<(), String> {
        let page = page().await.ok_or("there are no metrics")?;
        let identity = Identity::of(&self.worlds.last(), host_name::read());
        let client = otlp::Client::new(config, &self.tls, &self.endpoint_names, identity).await?;
        client.send_metrics(&page, self.store.clock().now().as_nanosecond()).await
    }

    async fn session(&self, collector: Collector, config: &FlowExport) -> Result<Session, String> {
        let world = self.worlds.last();
        let identity = Identity::of(&world, host_name::read());
        match collector {
            Collector::Ipfix => {
                ipfix::Session::open(&config.ipfix, &self.endpoint_names).await.map(Session::Ipfix)
            }
            Collector::Syslog => {
                let session =
                    syslog::Session::open(&config.syslog, &self.tls, &self.endpoint_names, identity);
                session.await.map(Session::Syslog)
            }
            Collector::Otlp => {
                let client =
                    otlp::Client::new(&config.otlp, &self.tls, &self.endpoint_names, identity).await?;
                Ok(Session::Otlp(client))
            }
        }
    }

    /// Notes how far the collector is.
    async fn advance(&self, collector: Collector, cursor: u64) {
        let Some(write) = self.cursors.lock().set(collector, cursor) else { return };
        if let Err(error) = blocking(write).await {
            tracing::warn!(%error, "failed to store how far the collectors are: a restart may repeat records");
        }
    }

    /// Forgets how far the collectors are. The flow log erases its records itself.
    async fn erase(self: Arc<Self>, level: WipeLevel) -> io::Result<()> {
        if level != WipeLevel::Hard {
            return Ok(());
        }
        let erase = self.cursors.lock().erase();
        blocking(erase).await
    }
}

impl std::fmt::Debug for FlowExports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowExports").finish_non_exhaustive()
    }
}

fn is_on(config: &FlowExport, collector: Collector) -> bool {
    match collector {
        Collector::Ipfix => config.ipfix.enabled,
        Collector::Syslog => config.syslog.enabled,
        Collector::Otlp => config.otlp.enabled,
    }
}

/// Reports whether a collector gets flow records. One of OpenTelemetry may get metrics only.
fn gets_records(config: &FlowExport, collector: Collector) -> bool {
    is_on(config, collector) && (collector != Collector::Otlp || config.otlp.logs)
}
