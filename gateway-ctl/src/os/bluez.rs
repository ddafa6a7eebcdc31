//! Client of the daemon of BlueZ over the system bus of D-Bus.
//!
//! The address of the bus is the default one, or that of `DBUS_SYSTEM_BUS_ADDRESS`. A daemon that does not run is not started:
//! its owner decides whether the host has Bluetooth.

mod agent;
mod interfaces;
mod properties;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use gateway_core::bluetooth::{BluetoothOrder, BluetoothSnapshot};
use gateway_model::id::MacAddr;
use parking_lot::Mutex;
use serde::Serialize;
use zbus::fdo::ManagedObjects;
use zbus::message::Type;
use zbus::wire::DynamicType;
use zbus::{Connection, MatchRule, Message, MessageStream, Variant, connection};

use agent::Agent;
pub(crate) use agent::PairingAgent;
use interfaces::{ADAPTER, AGENT_MANAGER, DEVICE, NETWORK, NETWORK_SERVER, PROPERTIES};
use properties::Objects;

const SERVICE: &str = "org.bluez";
const BUS: &str = "org.freedesktop.DBus";
/// Path of the agent on the connection of this daemon.
const AGENT_PATH: &str = "/net/gatewayd/agent";
/// Role of a network access point in the calls of BlueZ.
const NAP: &str = "nap";
/// Time for calls that answer at once.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for calls that talk to another device. A pairing ends before by itself.
const REMOTE_TIMEOUT: Duration = Duration::from_secs(75);
const QUEUE: NonZeroUsize = NonZeroUsize::new(64).expect("not zero");

/// Failure of a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BluezError {
    #[error("there is no system bus of D-Bus: {0}")]
    NoBus(String),
    #[error("the daemon of BlueZ does not run")]
    NoDaemon,
    #[error("there is no Bluetooth adapter")]
    NoAdapter,
    #[error("there is no device {0}")]
    NoDevice(MacAddr),
    #[error("a switch of the host blocks the adapter (rfkill)")]
    Blocked,
    #[error("no answer in time")]
    Timeout,
    #[error("{0}")]
    Refused(String),
}

/// Daemon of BlueZ, as the service uses it.
pub(crate) trait BluetoothDaemon: Send + Sync {
    /// Reads adapter and devices.
    fn read(&self) -> BoxFuture<'_, Result<BluetoothSnapshot, BluezError>>;

    /// Carries out an order. Returns the name of the interface of a network that was joined.
    fn execute<'a>(&'a self, order: &'a BluetoothOrder) -> BoxFuture<'a, Result<Option<String>, BluezError>>;
}

/// Connection to the daemon of BlueZ.
pub(crate) struct Bluez {
    connection: Connection,
    /// Paths of the adapter and of the devices, as they were last read.
    paths: Mutex<Paths>,
}

#[derive(Debug, Default)]
struct Paths {
    adapter: Option<String>,
    devices: BTreeMap<MacAddr, String>,
}

/// Change that the daemon of BlueZ reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BluezChange {
    Objects,
    /// The daemon ended, or another one began.
    Daemon,
}

impl Bluez {
    /// Connects to the bus and registers the agent.
    pub(crate) async fn connect(agent: Arc<dyn PairingAgent>) -> Result<Bluez, BluezError> {
        let builder = connection::Builder::system()
            .method_timeout(REMOTE_TIMEOUT)
            .serve_at(AGENT_PATH, Agent::new(agent));
        let built = tokio::time::timeout(CALL_TIMEOUT, builder.build()).await;
        let connection = built.map_err(|_| BluezError::Timeout)?;
        let connection = connection.map_err(|error| BluezError::NoBus(error.to_string()))?;
        let bluez = Bluez { connection, paths: Mutex::default() };
        let owned = bluez.call_to(BUS, "/org/freedesktop/DBus", BUS, "NameHasOwner", &(SERVICE,)).await?;
        if !owned.body().deserialize::<bool>().unwrap_or(false) {
            return Err(BluezError::NoDaemon);
        }
        bluez.call("/org/bluez", AGENT_MANAGER, "RegisterAgent", &(agent_path()?, "KeyboardDisplay")).await?;
        bluez.call("/org/bluez", AGENT_MANAGER, "RequestDefaultAgent", &(agent_path()?,)).await?;
        Ok(bluez)
    }

    /// Calls a function for each change, until the connection ends.
    pub(crate) async fn watch(&self, mut changed: impl FnMut(BluezChange)) -> Result<(), BluezError> {
        let objects = MatchRule::builder().msg_type(Type::Signal).sender(SERVICE).build();
        let owner = MatchRule::builder()
            .msg_type(Type::Signal)
            .sender(BUS)
            .member("NameOwnerChanged")
            .add_arg(SERVICE)
            .build();
        let subscribe = async |rule: zbus::Result<MatchRule<'static>>| {
            MessageStream::for_match_rule(rule?, &self.connection, Some(QUEUE)).await
        };
        let mut objects = subscribe(objects).await.map_err(refused)?;
        let mut owner = subscribe(owner).await.map_err(refused)?;
        loop {
            tokio::select! {
                message = objects.next() => match message {
                    Some(Ok(_)) => changed(BluezChange::Objects),
                    _ => return Ok(()),
                },
                message = owner.next() => match message {
                    Some(Ok(_)) => changed(BluezChange::Daemon),
                    _ => return Ok(()),
                },
                () = self.connection.closed() => return Ok(()),
            }
        }
    }

    async fn read_objects(&self) -> Result<BluetoothSnapshot, BluezError> {
        let call = self.call("/", "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", &());
        let reply = tokio::time::timeout(CALL_TIMEOUT, call).await.map_err(|_| BluezError::Timeout)??;
        let body = reply.body();
        let objects = Objects::new(body.deserialize::<ManagedObjects>().map_err(refused)?);
        *self.paths.lock() =
            Paths { adapter: objects.adapter_path().map(str::to_owned), devices: objects.device_paths() };
        Ok(objects.snapshot())
    }

    async fn carry_out(&self, order: &BluetoothOrder) -> Result<Option<String>, BluezError> {
        match order {
            BluetoothOrder::Power(on) => self.set(ADAPTER, "Powered", (*on).into()).await?,
            BluetoothOrder::Rename(name) => self.set(ADAPTER, "Alias", name.clone().into()).await?,
            BluetoothOrder::Discoverable(seconds) => {
                for timeout in ["DiscoverableTimeout", "PairableTimeout"] {
                    self.set(ADAPTER, timeout, (*seconds).into()).await?;
                }
                self.set(ADAPTER, "Pairable", true.into()).await?;
                self.set(ADAPTER, "Discoverable", true.into()).await?;
            }
            BluetoothOrder::Hidden => self.set(ADAPTER, "Discoverable", false.into()).await?,
            BluetoothOrder::StartDiscovery => {
                let filter = BTreeMap::from([("Transport", Variant::from("auto"))]);
                self.adapter("SetDiscoveryFilter", &(filter,)).await?;
                self.adapter("StartDiscovery", &()).await.map(drop)?;
            }
            BluetoothOrder::StopDiscovery => self.adapter("StopDiscovery", &()).await.map(drop)?,
            BluetoothOrder::Pair(mac) => self.device(*mac, DEVICE, "Pair", &()).await.map(drop)?,
            BluetoothOrder::CancelPairing(mac) => {
                self.device(*mac, DEVICE, "CancelPairing", &()).await.map(drop)?;
            }
            BluetoothOrder::Trust(mac, trusted) => {
                let path = self.device_path(*mac)?;
                let body = (DEVICE, "Trusted", Variant::from(*trusted));
                self.call(&path, PROPERTIES, "Set", &body).await.map(drop)?;
            }
            BluetoothOrder::Remove(mac) => {
                let path = self.device_path(*mac)?;
                let path = zbus::ObjectPath::try_from(path.as_str()).map_err(refused)?;
                self.adapter("RemoveDevice", &(path,)).await.map(drop)?;
            }
            BluetoothOrder::JoinNetwork(mac) => {
                let reply = self.device(*mac, NETWORK, "Connect", &(NAP,)).await?;
                return reply.body().deserialize::<String>().map(Some).map_err(refused);
            }
            BluetoothOrder::LeaveNetwork(mac) => {
                self.device(*mac, NETWORK, "Disconnect", &()).await.map(drop)?;
            }
            BluetoothOrder::OfferNetwork(bridge) => {
                self.adapter_of(NETWORK_SERVER, "Register", &(NAP, bridge.as_str())).await.map(drop)?;
            }
            BluetoothOrder::EndNetwork => {
                self.adapter_of(NETWORK_SERVER, "Unregister", &(NAP,)).await.map(drop)?;
            }
        }
        Ok(None)
    }

    async fn set(&self, interface: &str, property: &str, value: Variant<'_>) -> Result<(), BluezError> {
        let path = self.adapter_path()?;
        self.call(&path, PROPERTIES, "Set", &(interface, property, value)).await.map(drop)
    }

    async fn adapter(
        &self,
        method: &str,
        body: &(impl Serialize + DynamicType),
    ) -> Result<Message, BluezError> {
        self.adapter_of(ADAPTER, method, body).await
    }

    async fn adapter_of(
        &self,
        interface: &str,
        method: &str,
        body: &(impl Serialize + DynamicType),
    ) -> Result<Message, BluezError> {
        let path = self.adapter_path()?;
        self.call(&path, interface, method, body).await
    }

    async fn device(
        &self,
        mac: MacAddr,
        interface: &str,
        method: &str,
        body: &(impl Serialize + DynamicType),
    ) -> Result<Message, BluezError> {
        let path = self.device_path(mac)?;
        self.call(&path, interface, method, body).await
    }

    async fn call(
        &self,
        path: &str,
        interface: &str,
        method: &str,
        body: &(impl Serialize + DynamicType),
    ) -> Result<Message, BluezError> {
        self.call_to(SERVICE, path, interface, method, body).await
    }

    async fn call_to(
        &self,
        destination: &str,
        path: &str,
        interface: &str,
        method: &str,
        body: &(impl Serialize + DynamicType),
    ) -> Result<Message, BluezError> {
        let call = self.connection.call_method(Some(destination), path, Some(interface), method, body);
        call.await.map_err(refused)
    }

    fn adapter_path(&self) -> Result<String, BluezError> {
        self.paths.lock().adapter.clone().ok_or(BluezError::NoAdapter)
    }

    fn device_path(&self, mac: MacAddr) -> Result<String, BluezError> {
        self.paths.lock().devices.get(&mac).cloned().ok_or(BluezError::NoDevice(mac))
    }
}

impl BluetoothDaemon for Bluez {
    fn read(&self) -> BoxFuture<'_, Result<BluetoothSnapshot, BluezError>> {
        Box::pin(self.read_objects())
    }

    fn execute<'a>(&'a self, order: &'a BluetoothOrder) -> BoxFuture<'a, Result<Option<String>, BluezError>> {
        Box::pin(self.carry_out(order))
    }
}

impl std::fmt::Debug for Bluez {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bluez").field("paths", &*self.paths.lock()).finish_non_exhaustive()
    }
}

fn agent_path() -> Result<zbus::ObjectPath<'static>, BluezError> {
    zbus::ObjectPath::try_from(AGENT_PATH).map_err(refused)
}

/// Returns the failure that an error of the bus is.
fn refused(error: zbus::Error) -> BluezError {
    match error {
        zbus::Error::MethodError(name, message, _) => match name.as_str() {
            "org.bluez.Error.Blocked" => BluezError::Blocked,
            name => {
                let name = name.strip_prefix("org.bluez.Error.").unwrap_or(name).to_owned();
                BluezError::Refused(message.filter(|text| !text.is_empty()).unwrap_or(name))
            }
        },
        zbus::Error::FDO(error) => match *error {
            zbus::fdo::Error::ServiceUnknown(_) | zbus::fdo::Error::NameHasNoOwner(_) => BluezError::NoDaemon,
            zbus::fdo::Error::NoReply(_) | zbus::fdo::Error::TimedOut(_) => BluezError::Timeout,
            error => BluezError::Refused(error.to_string()),
        },
        zbus::Error::InputOutput(error) if error.kind() == std::io::ErrorKind::TimedOut => {
            BluezError::Timeout
        }
        error => BluezError::Refused(error.to_string()),
    }
}
