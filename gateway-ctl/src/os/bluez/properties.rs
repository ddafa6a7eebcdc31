//! Adapter and devices from the properties of the objects of BlueZ. A property that is missing or of another type has its
//! default: versions of BlueZ differ.

use std::collections::{BTreeMap, HashMap};

use gateway_core::bluetooth::device::{
    Adapter, DeviceClass, JoinedNetwork, RemoteDevice, service_names, shown_name,
};
use gateway_core::bluetooth::{BluetoothSnapshot, MAX_DEVICES};
use gateway_model::id::MacAddr;
use zbus::OwnedVariant;
use zbus::fdo::ManagedObjects;

use super::interfaces::{ADAPTER, DEVICE, NETWORK};

type Properties = HashMap<String, OwnedVariant>;

/// Objects by their paths, each with the properties of its interfaces.
pub(super) struct Objects(BTreeMap<String, BTreeMap<String, Properties>>);

impl Objects {
    pub(super) fn new(objects: ManagedObjects) -> Objects {
        let interfaces = |interfaces: HashMap<_, Properties>| {
            interfaces.into_iter().map(|(name, properties): (zbus::names::OwnedInterfaceName, _)| {
                (name.to_string(), properties)
            })
        };
        let paths = objects.into_iter();
        Objects(paths.map(|(path, one)| (path.to_string(), interfaces(one).collect())).collect())
    }

    /// Returns the path of the first adapter.
    pub(super) fn adapter_path(&self) -> Option<&str> {
        self.0.iter().find(|(_, interfaces)| interfaces.contains_key(ADAPTER)).map(|(path, _)| path.as_str())
    }

    pub(super) fn device_paths(&self) -> BTreeMap<MacAddr, String> {
        self.devices().filter_map(|(path, _)| Some((mac_of_path(path)?, path.clone()))).collect()
    }

    pub(super) fn snapshot(&self) -> BluetoothSnapshot {
        let adapter = self.adapter_path().and_then(|path| adapter(self.0.get(path)?.get(ADAPTER)?));
        let devices = self.devices().filter_map(|(path, interfaces)| device(path, interfaces));
        BluetoothSnapshot { adapter, devices: devices.collect() }
    }

    /// Returns the devices of the adapter. Those of another adapter are not used.
    fn devices(&self) -> impl Iterator<Item = (&String, &BTreeMap<String, Properties>)> {
        let prefix = self.adapter_path().map(|path| format!("{path}/"));
        let is_device = move |(path, interfaces): &(&String, &BTreeMap<String, Properties>)| {
            interfaces.contains_key(DEVICE) && prefix.as_ref().is_some_and(|prefix| path.starts_with(prefix))
        };
        self.0.iter().filter(is_device).take(MAX_DEVICES)
    }
}

fn get<T: TryFrom<OwnedVariant>>(properties: &Properties, name: &str) -> Option<T> {
    T::try_from(properties.get(name)?.try_clone().ok()?).ok()
}

fn flag(properties: &Properties, name: &str) -> bool {
    get(properties, name).unwrap_or_default()
}

fn text(properties: &Properties, name: &str) -> Option<String> {
    get(properties, name)
}

fn adapter(properties: &Properties) -> Option<Adapter> {
    Some(Adapter {
        address: text(properties, "Address")?.parse().ok()?,
        name: text(properties, "Alias").and_then(|name| shown_name(&name)).unwrap_or_default(),
        powered: flag(properties, "Powered"),
        discoverable: flag(properties, "Discoverable"),
        pairable: flag(properties, "Pairable"),
        discovering: flag(properties, "Discovering"),
    })
}

fn device(path: &str, interfaces: &BTreeMap<String, Properties>) -> Option<RemoteDevice> {
    let properties = interfaces.get(DEVICE)?;
    let network = interfaces.get(NETWORK).filter(|network| flag(network, "Connected"));
    Some(RemoteDevice {
        mac: mac_of_path(path)?,
        random_address: text(properties, "AddressType").as_deref() == Some("random"),
        // The alias of a device without a name is its address.
        name: text(properties, "Name").and_then(|name| shown_name(&name)),
        paired: flag(properties, "Paired"),
        trusted: flag(properties, "Trusted"),
        connected: flag(properties, "Connected"),
        rssi: get(properties, "RSSI"),
        class: get(properties, "Class").and_then(DeviceClass::of),
        services: service_names(&get::<Vec<String>>(properties, "UUIDs").unwrap_or_default()),
        network: network
            .and_then(|network| text(network, "Interface"))
            .map(|interface| JoinedNetwork { interface }),
    })
}

/// Returns the address of a device by the path of its object: `/org/bluez/hci0/dev_00_16_3E_00_00_01`.
pub(super) fn mac_of_path(path: &str) -> Option<MacAddr> {
    path.rsplit('/').next()?.strip_prefix("dev_")?.replace('_', ":").parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn path_of_a_device_has_its_address() {
        let mac = mac_of_path("/org/bluez/hci0/dev_00_16_3E_00_00_01").map(|mac| mac.to_string());
        assert_eq!(mac.as_deref(), Some("00:16:3e:00:00:01"));
        for path in
            ["/org/bluez/hci0", "/org/bluez/hci0/dev_00_16_3E_00_00", "/dev_00_16_3E_00_00_01/sep1", ""]
        {
            assert_eq!(mac_of_path(path), None, "{path}");
        }
    }

    proptest! {
        #[test]
        fn paths_of_any_text_are_read(path in "\\PC{0,60}", octets in any::<[u8; 6]>()) {
            let _ = mac_of_path(&path);
            let mac = MacAddr(octets);
            let name = mac.to_string().to_uppercase().replace(':', "_");
            prop_assert_eq!(mac_of_path(&format!("/org/bluez/hci0/dev_{name}")), Some(mac));
        }
    }
}
