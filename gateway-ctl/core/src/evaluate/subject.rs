//! Subject of a request: the device whose traffic is evaluated.

use std::net::IpAddr;

use gateway_model::Device;
use gateway_model::id::MacAddr;
use gateway_model::problem::{Problems, code};

use super::evaluation::EvaluatedDevice;
use super::request::{Refusal, Request};
use crate::compile::Input;
use crate::dns::Name;

/// The device, or the MAC address, whose traffic is evaluated.
#[derive(Debug)]
pub(crate) struct Subject<'a> {
    pub device: Option<&'a Device>,
    pub mac: Option<MacAddr>,
    /// Names by which it resolved the destination.
    pub names: Vec<Name>,
    /// Leg of the flow, if it is one of the log. It keeps the leg that its plan offers.
    pub previous_leg: Option<u8>,
}

impl<'a> Subject<'a> {
    pub(crate) fn find(input: &Input<'a>, request: &Request) -> Result<Subject<'a>, Refusal> {
        let mut problems = Problems::new();
        let subject = match (request.device_id, request.mac) {
            (None, None) => {
                problems.add(code::REQUIRED, "mac", "Give the mac or the device_id of a device.");
                return Err(Refusal::Invalid(problems));
            }
            (None, Some(mac)) => Subject {
                device: input.state.device_by_mac(mac).map(AsRef::as_ref),
                mac: Some(mac),
                names: Vec::new(),
                previous_leg: None,
            },
            (Some(id), mac) => {
                let not_found = || Refusal::NotFound { resource_type: "device", id: id.to_string() };
                let device = input.state.devices.get(id).ok_or_else(not_found)?.as_ref();
                if mac.is_some_and(|mac| !device.all_macs().contains(&mac)) {
                    problems.add(
                        code::CONFLICT,
                        "mac",
                        format!("The device {:?} has other addresses.", device.name),
                    );
                }
                let seen = |mac: &MacAddr| input.facts.neighbours.contains_key(&mac.octets());
                let macs = device.all_macs();
                let own = macs.iter().find(|mac| seen(mac)).copied().or(device.mac).or(macs.first().copied());
                Subject { device: Some(device), mac: mac.or(own), names: Vec::new(), previous_leg: None }
            }
        };
        if problems.is_empty() { Ok(subject) } else { Err(Refusal::Invalid(problems)) }
    }

    /// Adds what is known of the flow: the names by which its client resolved the destination, and its leg.
    pub(crate) fn knowing(mut self, request: &Request) -> Subject<'a> {
        self.names = request.name().into_iter().collect();
        self.names.extend(request.known_as.iter().cloned());
        self.previous_leg = request.previous_leg;
        self
    }

    /// Addresses observed with it.
    pub(crate) fn addresses(&self, input: &Input<'_>) -> Vec<IpAddr> {
        let of = |mac: &MacAddr| input.facts.neighbours.get(&mac.octets()).into_iter().flatten().copied();
        let others = self.device.map(Device::all_macs).unwrap_or_default();
        self.mac.iter().chain(others.iter().filter(|mac| Some(**mac) != self.mac)).flat_map(of).collect()
    }

    pub(crate) fn label(&self) -> String {
        match (self.device, self.mac) {
            (Some(device), _) => device.name.clone(),
            (None, Some(mac)) => mac.to_string(),
            (None, None) => "unknown".to_owned(),
        }
    }

    pub(crate) fn shown(&self, input: &Input<'_>) -> EvaluatedDevice {
        let device = self.device;
        let groups =
            device.map(|device| input.state.groups_of(device.meta.id).map(|g| g.name.clone()).collect());
        let class = device.and_then(|device| input.state.trust_class_of(device));
        EvaluatedDevice {
            id: device.map(|device| device.meta.id.to_string()),
            name: device.map(|device| device.name.clone()),
            mac: self.mac.map(|mac| mac.to_string()),
            status: device.map(|device| device.status.to_string()),
            trust_class: class.map(|class| class.name.clone()),
            groups: groups.unwrap_or_default(),
        }
    }
}
