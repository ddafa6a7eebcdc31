//! Names of the interfaces of D-Bus that the client uses.

pub(super) const ADAPTER: &str = "org.bluez.Adapter1";
pub(super) const AGENT_MANAGER: &str = "org.bluez.AgentManager1";
pub(super) const DEVICE: &str = "org.bluez.Device1";
pub(super) const NETWORK: &str = "org.bluez.Network1";
pub(super) const NETWORK_SERVER: &str = "org.bluez.NetworkServer1";
pub(super) const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
