//! Detection of intrusions by Bluetooth: new devices, names that change their address or imitate a paired device, and floods.
//!
//! The first day is for learning: its devices are known without an event. Devices whose address changes for privacy are not
//! kept, and count for floods only.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gateway_model::id::MacAddr;
use gateway_model::settings::groups::Severity;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::device::RemoteDevice;

/// Time in which devices are learned without events.
pub const LEARNING_TIME: SignedDuration = SignedDuration::from_hours(24);
/// Maximum number of known devices. The one that was not heard for longest gives way, unpaired ones first.
pub const MAX_KNOWN: usize = 1024;
/// Maximum number of events that are kept.
pub const MAX_EVENTS: usize = 256;
/// So many addresses that were not known within [`FLOOD_WINDOW`] are a flood.
pub const FLOOD_DEVICES: usize = 40;
pub const FLOOD_WINDOW: SignedDuration = SignedDuration::from_secs(10);
/// A flood is over when no more than a few addresses were new for this time.
const FLOOD_END: SignedDuration = SignedDuration::from_secs(60);

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdsKind {
    /// A device that was never heard.
    NewDevice,
    /// A device that is not paired took another address and kept its name.
    MacChange,
    /// A device has the name of a paired one.
    SpoofedName,
    /// Many addresses that were never heard came at once.
    Flood,
}

/// Event of the ring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdsEvent {
    pub time: Timestamp,
    /// Device; of a flood the last one.
    pub mac: MacAddr,
    pub kind: IdsKind,
    /// Strength of the received signal in dBm; null if it is not known.
    pub rssi: Option<i16>,
    pub severity: Severity,
    /// Name that the device gives itself; null without one.
    pub name: Option<String>,
    /// Known device whose name it has; null without one.
    pub like: Option<MacAddr>,
}

impl IdsEvent {
    /// Returns the event as a sentence.
    pub fn message(&self) -> String {
        let name = self.name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
        let like = self.like.map(|mac| mac.to_string()).unwrap_or_default();
        match self.kind {
            IdsKind::NewDevice => format!("The Bluetooth device {}{name} was never heard before.", self.mac),
            IdsKind::MacChange => {
                format!("The Bluetooth device {}{name} has the name of {like}, which is gone.", self.mac)
            }
            IdsKind::SpoofedName => {
                format!("The Bluetooth device {}{name} has the name of the paired device {like}.", self.mac)
            }
            IdsKind::Flood => format!(
                "{FLOOD_DEVICES} or more unknown Bluetooth devices came within {} s.",
                FLOOD_WINDOW.as_secs()
            ),
        }
    }
}

/// Device that was heard before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnownDevice {
    pub mac: MacAddr,
    pub name: Option<String>,
    pub paired: bool,
    pub first_seen: Timestamp,
    pub last_seen: Timestamp,
}

/// Known devices and events. The fields that are stored survive a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Detection {
    learning_since: Option<Timestamp>,
    #[serde(with = "known_list")]
    known: BTreeMap<MacAddr, KnownDevice>,
    /// Oldest first.
    events: VecDeque<IdsEvent>,
    /// Addresses of the last observation.
    #[serde(skip)]
    present: BTreeSet<MacAddr>,
    /// Times at which addresses were new.
    #[serde(skip)]
    arrivals: VecDeque<Timestamp>,
    #[serde(skip)]
    flood_until: Option<Timestamp>,
}

impl Detection {
    /// Returns the end of the learning time. `None`: nothing was observed yet.
    pub fn learned_until(&self) -> Option<Timestamp> {
        self.learning_since.map(|since| since.saturating_add(LEARNING_TIME).unwrap_or(Timestamp::MAX))
    }

    pub fn is_learning(&self, now: Timestamp) -> bool {
        self.learned_until().is_none_or(|until| now < until)
    }

    /// Returns the known devices, in the order of their addresses.
    pub fn known(&self) -> impl Iterator<Item = &KnownDevice> {
        self.known.values()
    }

    /// Returns the events, the newest first.
    pub fn events(&self) -> impl Iterator<Item = &IdsEvent> {
        self.events.iter().rev()
    }

    /// Takes the devices that are heard now. Returns the new events.
    pub fn observe(&mut self, devices: &[RemoteDevice], now: Timestamp) -> Vec<IdsEvent> {
        self.learning_since.get_or_insert(now);
        let is_heard = |device: &&RemoteDevice| device.rssi.is_some() || device.connected || device.paired;
        let heard: Vec<&RemoteDevice> = devices.iter().filter(is_heard).collect();
        let present: BTreeSet<MacAddr> = heard.iter().map(|device| device.mac).collect();
        let before = std::mem::replace(&mut self.present, present);
        let mut events = Vec::new();
        for device in heard {
            if !self.known.contains_key(&device.mac) && !before.contains(&device.mac) {
                events.extend(self.note_arrival(device, now));
            }
            if !device.random_address {
                events.extend(self.note_device(device, now));
            }
        }
        self.events.extend(events.iter().cloned());
        let surplus = self.events.len().saturating_sub(MAX_EVENTS);
        self.events.drain(..surplus);
        events
    }

    /// Forgets all devices and events, and learns again.
    pub fn clear(&mut self) {
        *self = Detection::default();
    }

    /// Counts an address that was not heard before. Returns the flood that it is the beginning of.
    fn note_arrival(&mut self, device: &RemoteDevice, now: Timestamp) -> Option<IdsEvent> {
        self.arrivals.push_back(now);
        let is_old = |at: &Timestamp| now.duration_since(*at) > FLOOD_WINDOW;
        while self.arrivals.front().is_some_and(is_old) || self.arrivals.len() > FLOOD_DEVICES {
            self.arrivals.pop_front();
        }
        if self.arrivals.len() < FLOOD_DEVICES {
            return None;
        }
        let is_new = !self.is_flooded(now);
        self.flood_until = now.checked_add(FLOOD_END).ok();
        is_new.then(|| event(IdsKind::Flood, Severity::Critical, device, None, now))
    }

    fn is_flooded(&self, now: Timestamp) -> bool {
        self.flood_until.is_some_and(|until| now < until)
    }

    /// Follows a device. Returns the event that its name or its address is.
    fn note_device(&mut self, device: &RemoteDevice, now: Timestamp) -> Option<IdsEvent> {
        let known = self.known.get(&device.mac);
        let is_new = known.is_none();
        let has_new_name = known.is_none_or(|known| known.name != device.name);
        let found = match has_new_name && !device.paired {
            true => self.suspicion(device, is_new, now),
            false => None,
        };
        let entry = self.known.entry(device.mac).or_insert_with(|| KnownDevice {
            mac: device.mac,
            name: None,
            paired: false,
            first_seen: now,
            last_seen: now,
        });
        if device.name.is_some() {
            entry.name.clone_from(&device.name);
        }
        entry.paired = device.paired;
        if device.rssi.is_some() || device.connected {
            entry.last_seen = now;
        }
        self.forget_surplus(device.mac);
        found
    }

    fn suspicion(&self, device: &RemoteDevice, is_new: bool, now: Timestamp) -> Option<IdsEvent> {
        let named_alike = |known: &&KnownDevice| {
            known.mac != device.mac && known.name.is_some() && known.name == device.name
        };
        let like = self.known.values().filter(named_alike);
        if let Some(paired) = like.clone().find(|known| known.paired) {
            return Some(event(IdsKind::SpoofedName, Severity::Critical, device, Some(paired.mac), now));
        }
        // A flood is one event, not one of each address.
        if !is_new || self.is_learning(now) || self.is_flooded(now) {
            return None;
        }
        let gone = like.clone().find(|known| !self.present.contains(&known.mac));
        Some(match gone {
            Some(gone) => event(IdsKind::MacChange, Severity::Warning, device, Some(gone.mac), now),
            None => event(IdsKind::NewDevice, Severity::Info, device, None, now),
        })
    }

    fn forget_surplus(&mut self, keep: MacAddr) {
        if self.known.len() <= MAX_KNOWN {
            return;
        }
        let others = self.known.values().filter(|known| known.mac != keep);
        let oldest = others.min_by_key(|known| (known.paired, known.last_seen)).map(|known| known.mac);
        if let Some(mac) = oldest {
            self.known.remove(&mac);
        }
    }
}

fn event(
    kind: IdsKind,
    severity: Severity,
    device: &RemoteDevice,
    like: Option<MacAddr>,
    time: Timestamp,
) -> IdsEvent {
    IdsEvent { time, mac: device.mac, kind, rssi: device.rssi, severity, name: device.name.clone(), like }
}

/// Known devices as a list.
mod known_list {
    use std::collections::BTreeMap;

    use gateway_model::id::MacAddr;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::KnownDevice;

    pub(super) fn serialize<S: Serializer>(
        known: &BTreeMap<MacAddr, KnownDevice>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(known.values())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<MacAddr, KnownDevice>, D::Error> {
        let list = Vec::<KnownDevice>::deserialize(deserializer)?;
        Ok(list.into_iter().map(|known| (known.mac, known)).collect())
    }
}
