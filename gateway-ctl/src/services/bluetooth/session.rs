//! Connection to the daemon of BlueZ: it is renewed whenever it ends, and read after each change.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::bluetooth::BluetoothOrder;
use gateway_core::bluetooth::detection::{IdsEvent, IdsKind};
use gateway_model::id::MacAddr;
use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::settings::groups::{BluetoothSettings, Severity};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::agent::WindowAgent;
use super::error::Missing;
use super::handle::Bluetooth;
use super::pan::PanRun;
use crate::os::bluez::{BluetoothDaemon, Bluez, BluezChange, BluezError};
use crate::service::Context;
use crate::supervise::blocking;

/// Pause before the bus is asked again.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Shortest time between two readings: a flood of devices is many changes.
const MIN_INTERVAL: Duration = Duration::from_millis(300);
/// Longest time between two readings.
const MAX_INTERVAL: Duration = Duration::from_secs(5);
/// Interval at which known devices are stored.
const SAVE_INTERVAL: Duration = Duration::from_secs(60);
/// Subject of the alert about a flood, whose addresses say nothing.
const FLOOD_SUBJECT: &str = "flood";

/// Runs until it is aborted.
pub(super) async fn run(context: Context) {
    let bluetooth = context.handles.get::<Bluetooth>();
    let mut last = None;
    loop {
        let error = session(&context, &bluetooth).await;
        let missing = Missing::of(&error);
        if last.as_ref() != Some(&missing) {
            tracing::debug!(%error, "no Bluetooth");
        }
        bluetooth.set_daemon(Err(missing.clone()));
        last = Some(missing);
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Changes since the connection began.
#[derive(Clone, Copy, Debug, Default)]
struct Changes {
    objects: u64,
    has_ended: bool,
}

/// Runs until the connection ends. Returns the reason.
async fn session(context: &Context, bluetooth: &Bluetooth) -> BluezError {
    let agent = Arc::new(WindowAgent { context: context.clone(), bluetooth: bluetooth.clone() });
    let bluez = match Bluez::connect(agent).await {
        Ok(bluez) => Arc::new(bluez),
        Err(error) => return error,
    };
    let (sender, mut changes) = watch::channel(Changes::default());
    let mut tasks = JoinSet::new();
    tasks.spawn(follow_changes(bluez.clone(), sender));
    let mut pan = PanRun::new(context.clone(), bluetooth.clone(), bluez.clone());
    let mut session = Session { context, bluetooth, bluez: &bluez, had_adapter: false };
    let mut worlds = context.worlds.watch();
    let clock = context.store.clock();
    let (mut saved_at, mut read_at) = (clock.boot(), None);
    loop {
        let boot = clock.boot();
        // Reports of other services change the world often, and concern the network of a phone alone.
        if read_at.is_none_or(|at| boot.saturating_sub(at) >= MAX_INTERVAL) {
            match session.read().await {
                // It may wait for another device. Its end is a change of its own.
                Ok(()) | Err(BluezError::Timeout) => read_at = Some(boot),
                Err(error) => return error,
            }
        }
        pan.follow().await;
        if boot.saturating_sub(saved_at) >= SAVE_INTERVAL {
            saved_at = boot;
            store(bluetooth).await;
        }
        tokio::time::sleep(MIN_INTERVAL).await;
        tokio::select! {
            changed = changes.changed() => {
                if changed.is_err() || changes.borrow().has_ended {
                    return BluezError::NoDaemon;
                }
                read_at = None;
            }
            changed = worlds.changed() => if changed.is_err() { return BluezError::NoDaemon },
            () = bluetooth.0.wake.notified() => read_at = None,
            () = tokio::time::sleep(MAX_INTERVAL) => {}
        }
    }
}

/// Follows the changes that BlueZ reports. A queue of the connection that is not read would hold up its answers.
async fn follow_changes(bluez: Arc<Bluez>, sender: watch::Sender<Changes>) {
    let end = bluez.watch(|change| {
        sender.send_modify(|changes| match change {
            BluezChange::Objects => changes.objects = changes.objects.wrapping_add(1),
            BluezChange::Daemon => changes.has_ended = true,
        });
    });
    if let Err(error) = end.await {
        tracing::debug!(%error, "the connection to BlueZ ended");
    }
    sender.send_modify(|changes| changes.has_ended = true);
}

async fn store(bluetooth: &Bluetooth) {
    let bluetooth = bluetooth.clone();
    if let Err(error) = blocking(move || bluetooth.save()).await {
        tracing::warn!(%error, "failed to store the known Bluetooth devices");
    }
}

struct Session<'a> {
    context: &'a Context,
    bluetooth: &'a Bluetooth,
    bluez: &'a Arc<Bluez>,
    /// The last reading had an adapter.
    had_adapter: bool,
}

impl Session<'_> {
    /// Reads the objects, and carries out what follows from them.
    async fn read(&mut self) -> Result<(), BluezError> {
        let snapshot = self.bluez.read().await?;
        let now = self.context.store.clock().now();
        let has_adapter = snapshot.adapter.is_some();
        let appears = has_adapter && !self.had_adapter;
        self.had_adapter = has_adapter;
        let events = self.bluetooth.take(snapshot, now);
        if self.bluetooth.lock().daemon.is_err() {
            self.bluetooth.set_daemon(Ok(self.bluez.clone() as Arc<dyn BluetoothDaemon>));
            tracing::info!("connected to the daemon of BlueZ");
        }
        self.report(&events);
        let settings: BluetoothSettings = self.context.store.current().group();
        for order in self.due_orders(&settings, appears) {
            // The next reading tries it again if it is still due.
            if let Err(error) = self.bluez.execute(&order).await {
                tracing::warn!(?order, %error, "BlueZ refused an order");
            }
        }
        Ok(())
    }

    /// Returns the orders that no user gives: power at the start, the end of a scan, of a pairing and of trust that the settings
    /// no longer allow.
    fn due_orders(&self, settings: &BluetoothSettings, appears: bool) -> Vec<BluetoothOrder> {
        let now = self.context.store.clock().now();
        let mut state = self.bluetooth.lock();
        let mut orders = Vec::new();
        let powered = state.snapshot.adapter.as_ref().map(|adapter| adapter.powered);
        if appears && settings.auto_power && powered == Some(false) {
            orders.push(BluetoothOrder::Power(true));
        }
        if state.scan_until.is_some_and(|until| now >= until) {
            state.scan_until = None;
            if powered == Some(true) {
                orders.push(BluetoothOrder::StopDiscovery);
            }
        }
        let expired: Option<MacAddr> = state.pairing.expire(now);
        orders.extend(expired.map(BluetoothOrder::CancelPairing));
        let trusted = state.snapshot.devices.iter().filter(|device| device.trusted);
        let refused = trusted.filter(|device| !settings.allows(device.mac));
        orders.extend(refused.map(|device| BluetoothOrder::Trust(device.mac, false)));
        orders
    }

    fn report(&self, events: &[IdsEvent]) {
        for event in events {
            tracing::info!(device = %event.mac, kind = ?event.kind, severity = %event.severity, "Bluetooth event");
            if event.severity >= Severity::Warning {
                let subject = if event.kind == IdsKind::Flood {
                    FLOOD_SUBJECT.to_owned()
                } else {
                    event.mac.to_string()
                };
                self.context.active_alerts.note_event(AlertKind::BluetoothIds, &subject, event.message());
            }
        }
    }
}
