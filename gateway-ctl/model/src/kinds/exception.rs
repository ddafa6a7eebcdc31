//! Exceptions: temporary deviations from the policies for a device. They take effect at once, without an apply.
//!
//! An exception that has ended or was revoked never becomes active again. Rollbacks, reverts and imports keep that:
//! they leave an exception active only if it is active already. A user who needs one again makes a new one.

use std::collections::BTreeSet;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use jiff::{SignedDuration, Timestamp};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::device::Device;
use super::policy_source::{self, Source, SourceType};
use super::profile::Profile;
use super::trust_class::Internet;
use crate::bulk_edit::Names;
use crate::decode;
use crate::edit::EditError;
use crate::id::Id;
use crate::id_or_name::{check_reference, reference};
use crate::problem::{Problems, code};
use crate::references::{Hold, Ref};
use crate::resource::{Keys, Meta, Resource, ref_key};
use crate::state::State;
use crate::validated::{Endpoint, check_free_text, is_host_name, parse_port, text_enum};

/// Minutes.
pub const DEFAULT_DURATION: i64 = 60;
pub const LONGEST_DURATION: i64 = 1440;
/// Largest number of minutes that is compared with an end.
const MAX_MINUTES: i64 = 100 * 366 * 1440;
/// Difference of clocks that is no contradiction.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(1);
/// Ports by which a host finds a captive portal and logs in: DNS, HTTP, HTTPS.
const PORTAL_PORTS: [u16; 3] = [53, 80, 443];

text_enum! {
    #[derive(Default)]
    pub enum ExceptionType {
        /// Out by the default route, because something else must not wait.
        #[default]
        EmergencyBypass = "emergency-bypass",
        /// Egress by the default route, for diagnosis.
        DiagnosticBypass = "diagnostic-bypass",
        /// Egress by the default route to the targets only.
        ServiceAllowlist = "service-allowlist",
        /// Egress by the default route, or by the hops of a profile.
        TemporaryDirect = "temporary-direct",
        /// Nothing passes the gateway.
        Quarantine = "quarantine",
        /// Egress by the default route for DNS and the web only, to log in at a captive portal.
        CaptivePortal = "captive-portal",
    }
}

text_enum! {
    pub enum ExceptionStatus {
        /// Begins later.
        Planned = "planned",
        Active = "active",
        Expired = "expired",
        Revoked = "revoked",
    }
}

/// An exception. It is not edited: revoke it and make another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Exception {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    pub r#type: ExceptionType,
    /// Id of the device it applies to.
    pub device_id: Id,
    /// Allows the device to leave without a tunnel. A bypass without it has no effect; `quarantine` ignores it.
    pub allow_direct: bool,
    /// 1 to 1440.
    #[schemars(range(min = 1, max = 1440))]
    pub duration_min: i64,
    pub reason: String,
    /// For `service-allowlist`: addresses, networks, `address:port`, a port as `:443`, or domains: `example.com` with all
    /// names below it, `=example.com` without them. `example.com:443` is not supported by this version.
    pub targets: Vec<String>,
    /// For `temporary-direct`: id or name of the profile whose hops replace the default route.
    pub profile: Option<String>,
    /// Begin; null or absent: at once. Not in the past beyond a minute.
    pub starts_at: Option<Timestamp>,
    /// End. May be given in place of `duration_min`; both must agree within a minute, and the earlier one counts.
    pub expires_at: Option<Timestamp>,
    /// User who created the exception.
    #[schemars(extend("readOnly" = true))]
    pub created_by: String,
    #[schemars(extend("readOnly" = true))]
    pub revoked_at: Option<Timestamp>,
    /// Time at which the exception was recorded as ended. From then on no clock makes it active again.
    #[schemars(extend("readOnly" = true))]
    pub ended_at: Option<Timestamp>,
}

impl Default for Exception {
    fn default() -> Exception {
        Exception {
            meta: Meta::default(),
            r#type: ExceptionType::EmergencyBypass,
            device_id: Id::NIL,
            allow_direct: false,
            duration_min: DEFAULT_DURATION,
            reason: String::new(),
            targets: Vec::new(),
            profile: None,
            starts_at: None,
            expires_at: None,
            created_by: String::new(),
            revoked_at: None,
            ended_at: None,
        }
    }
}

/// Fields that depend on the time, shown beside the stored fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExceptionLive {
    pub status: ExceptionStatus,
    /// Seconds until it ends; 0 when it has.
    pub remaining_sec: i64,
}

impl Exception {
    pub fn status(&self, now: Timestamp) -> ExceptionStatus {
        match (self.revoked_at, self.ended_at, self.expires_at) {
            (Some(_), _, _) => ExceptionStatus::Revoked,
            (None, None, Some(end)) if now < end && self.has_begun(now) => ExceptionStatus::Active,
            (None, None, Some(end)) if now < end && self.is_planned() => ExceptionStatus::Planned,
            (None, _, _) => ExceptionStatus::Expired,
        }
    }

    /// With an unreliable clock, exceptions that allow egress have not begun, and those that block have, unless they
    /// were planned.
    fn has_begun(&self, now: Timestamp) -> bool {
        let at_once = self.r#type == ExceptionType::Quarantine && !self.is_planned();
        at_once || self.starts_at.is_none_or(|start| start <= now)
    }

    /// Reports whether it was made to begin later than it was made.
    fn is_planned(&self) -> bool {
        self.starts_at.is_some_and(|start| start > self.meta.created_at)
    }

    /// Returns the time at which it begins if that is in the future.
    pub fn planned_start(&self, now: Timestamp) -> Option<Timestamp> {
        self.starts_at.filter(|_| self.status(now) == ExceptionStatus::Planned)
    }

    fn is_to_come_or_active(&self, now: Timestamp) -> bool {
        matches!(self.status(now), ExceptionStatus::Planned | ExceptionStatus::Active)
    }

    pub fn is_active(&self, now: Timestamp) -> bool {
        self.status(now) == ExceptionStatus::Active
    }

    pub fn live(&self, now: Timestamp) -> ExceptionLive {
        let status = self.status(now);
        let left =
            self.expires_at.filter(|_| status == ExceptionStatus::Active).map(|end| end.duration_since(now));
        // A second that has begun is one that is left.
        let remaining_sec = left.map_or(0, |left| left.as_secs() + i64::from(left.subsec_nanos() > 0));
        ExceptionLive { status, remaining_sec }
    }

    /// Reports whether the exception sends the device through another egress than the policies.
    pub fn diverts(&self) -> bool {
        match self.r#type {
            ExceptionType::EmergencyBypass
            | ExceptionType::DiagnosticBypass
            | ExceptionType::TemporaryDirect
            | ExceptionType::ServiceAllowlist
            | ExceptionType::CaptivePortal => self.allow_direct,
            ExceptionType::Quarantine => false,
        }
    }

    /// Reports whether the exception allows traffic that the policies might block. If such an exception ends early,
    /// traffic is only blocked.
    pub(crate) fn allows_egress(&self) -> bool {
        self.r#type != ExceptionType::Quarantine
    }

    /// Returns the destinations to which it is limited. `None` if it is for all traffic of the device.
    pub fn destinations(&self) -> Option<Vec<Source>> {
        let destinations: BTreeSet<Source> = match self.r#type {
            ExceptionType::ServiceAllowlist => {
                self.targets.iter().filter_map(|target| target_of(target)).flatten().collect()
            }
            ExceptionType::CaptivePortal => PORTAL_PORTS.into_iter().flat_map(to_port).collect(),
            _ => return None,
        };
        Some(destinations.into_iter().collect())
    }

    /// Reports what is wrong with begin and end.
    fn validate_times(&self, state: &State, problems: &mut Problems) {
        let now = state.now();
        let is_new = self.meta.created_at == now;
        if is_new && self.starts_at.is_some_and(|start| start < now - TOLERANCE) {
            problems.add(code::RANGE, "starts_at", "Must not be in the past by more than a minute.");
        }
        let Some(end) = self.expires_at.filter(|_| is_new) else { return };
        let start = self.starts_at.unwrap_or(now);
        if end <= start || end <= now {
            problems.add(code::RANGE, "expires_at", "Must be after the begin, and in the future.");
        } else if end.duration_since(self.end_by_duration(start)).abs() >= TOLERANCE {
            let message = "Differs from the begin and duration_min by a minute or more; give one of them.";
            problems.add(code::CONFLICT, "expires_at", message);
        }
    }

    fn end_by_duration(&self, start: Timestamp) -> Timestamp {
        let minutes = SignedDuration::from_mins(self.duration_min.clamp(0, MAX_MINUTES));
        start.checked_add(minutes).unwrap_or(Timestamp::MAX)
    }

    fn validate_egress(&self, device: &Device, state: &State, problems: &mut Problems) {
        if self.r#type == ExceptionType::Quarantine {
            return;
        }
        if let Some(class) = state.class_without_exceptions(device) {
            let message = format!(
                "The privacy class {:?}, of the device or of a group, allows no exceptions.",
                class.name
            );
            problems.add(code::CONFLICT, "type", message);
        }
        if !self.allow_direct {
            problems.warn(
                "allow_direct",
                "It is false, so the policies go on deciding: the exception is only on record.",
            );
        }
        let trust = state.trust_class_of(device).filter(|class| class.internet == Internet::None);
        if let Some(trust) = trust {
            let message = format!(
                "The trust class {:?} keeps the device off the internet, which an exception does not change.",
                trust.name
            );
            problems.warn("device_id", message);
        }
    }
}

/// Returns the destinations of a target: a network, an address, either with a port, a port as `:443`, or a domain.
fn target_of(text: &str) -> Option<Vec<Source>> {
    if let Some(port) = text.strip_prefix(':') {
        return parse_port(port).map(|port| to_port(port).to_vec());
    }
    let is_one = |sources: &Vec<Source>| sources.len() == 1;
    let destination = policy_source::parse(SourceType::Destination, text).ok().filter(is_one);
    let domain = || {
        let name = text.strip_prefix('=').unwrap_or(text);
        let domain = is_host_name(name).then(|| policy_source::parse(SourceType::Domain, text).ok());
        domain.flatten().filter(is_one)
    };
    destination.or_else(domain)
}

/// Returns all addresses with this port.
fn to_port(port: u16) -> [Source; 2] {
    [IpNet::from(Ipv4Net::default()), IpNet::from(Ipv6Net::default())]
        .map(|net| Source::Destination { net, port: Some(port) })
}

impl Resource for Exception {
    const NOUN: &'static str = "exception";
    const COLLECTION: &'static str = "exceptions";
    const READ_ONLY: &'static [&'static str] =
        &["status", "created_by", "revoked_at", "ended_at", "remaining_sec"];
    const REQUIRED: &'static [&'static str] = &["type", "device_id"];

    fn label(&self) -> &str {
        self.r#type.as_str()
    }

    fn prepare(&mut self) {
        for target in self.targets.iter_mut().filter(|target| !target.is_ascii()) {
            *target = policy_source::with_a_labels(target);
        }
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        if self.duration_min < 1 {
            problems.add(code::RANGE, "duration_min", "Must be at least one minute.");
        }
        if self.duration_min > LONGEST_DURATION {
            let message = "Capped to 1440 minutes: an exception lasts at most 24 hours.";
            problems.warn("duration_min", message);
        }
        self.validate_times(state, problems);
        check_free_text("reason", &self.reason, 1000, problems);
        if self.r#type == ExceptionType::ServiceAllowlist && self.targets.is_empty() {
            problems.required("targets");
        }
        if self.targets.len() > 64 {
            problems.add(code::RANGE, "targets", "At most 64 targets.");
        }
        for (index, target) in self.targets.iter().enumerate() {
            let path = format!("targets[{index}]");
            if target_of(target).is_some() {
                continue;
            }
            if target.parse::<Endpoint>().is_ok() {
                problems.not_supported(path, "A domain with a port");
            } else {
                let message = "Expected a network or an address, either with a port or without, a port such as :443, or a domain.";
                problems.add(code::FORMAT, path, message);
            }
        }
        if !self.targets.is_empty() && self.r#type != ExceptionType::ServiceAllowlist {
            problems.add(code::CONFLICT, "targets", "Only a service-allowlist has targets.");
        }
        check_reference::<Profile>("profile", &self.profile, state, problems);
        if self.profile.is_some() && self.r#type != ExceptionType::TemporaryDirect {
            problems.add(code::CONFLICT, "profile", "Only temporary-direct takes the way of a profile.");
        }
        if let Some(profile) = state.referred::<Profile>(&self.profile)
            && (profile.hops.len() > 1 || profile.chain.is_some())
        {
            problems.not_supported("profile", "For exceptions a profile of more than one hop");
        }
        match state.devices.get(self.device_id) {
            Some(device) => self.validate_egress(device, state, problems),
            None => {
                let message = format!("There is no device {}.", self.device_id);
                problems.add(code::UNKNOWN_REFERENCE, "device_id", message);
            }
        }
    }

    fn apply_consequences(mut self, state: &mut State) -> Result<(), EditError> {
        self.duration_min = self.duration_min.min(LONGEST_DURATION);
        let starts = *self.starts_at.get_or_insert(state.now());
        let end = self.end_by_duration(starts);
        self.expires_at = Some(self.expires_at.map_or(end, |given| given.min(end)));
        if self.created_by.is_empty() {
            self.created_by = state.author().to_owned();
        }
        state.put(self)
    }

    /// Deleting one that is active or planned revokes it; one that has ended goes.
    fn retired(&self, state: &State) -> Option<Exception> {
        let revoked = Exception { revoked_at: Some(state.now()), ..self.clone() };
        self.is_to_come_or_active(state.now()).then_some(revoked)
    }

    fn restored(&self, current: &State) -> Option<Exception> {
        let now = current.now();
        let present = current.exceptions.get(self.meta.id);
        let mut restored = self.clone();
        if let Some(present) = present {
            restored.revoked_at = present.revoked_at.or(self.revoked_at);
            restored.ended_at = present.ended_at.or(self.ended_at);
        }
        let is_open = restored.revoked_at.or(restored.ended_at).is_none();
        if is_open && !present.is_some_and(|present| present.is_to_come_or_active(now)) {
            restored.ended_at = Some(now);
        }
        (restored != *self).then_some(restored)
    }

    fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.or(self.ended_at).is_none() && self.expires_at.is_none_or(|end| now < end)
    }

    fn refs(&self) -> Vec<Ref> {
        let device = Ref::new(Device::NOUN, self.device_id, "device_id", Hold::Member);
        let hold = if self.revoked_at.or(self.ended_at).is_some() { Hold::Member } else { Hold::Firm };
        [Some(device), reference::<Profile>("profile", &self.profile, hold)].into_iter().flatten().collect()
    }

    fn resolve(input: &mut Map<String, Value>, names: &Names<'_>) {
        if let Some(device) = input.get_mut("device_id") {
            names.resolve(Device::NOUN, device);
        }
    }

    fn keys(&self, _keys: &mut Keys) {}

    /// An end in place of a duration gives the duration, in whole minutes; the end counts.
    fn complete(input: &mut Map<String, Value>, state: &State) {
        let time = |field: &str| -> Option<Timestamp> { decode::from_value(input.get(field)?).ok() };
        let (Some(end), None) = (time("expires_at"), input.get("duration_min")) else { return };
        let seconds = end.duration_since(time("starts_at").unwrap_or(state.now())).as_secs();
        if seconds >= 0 {
            input.insert("duration_min".to_owned(), ((seconds + 59) / 60).max(1).into());
        }
    }

    fn carry_over(input: &mut Map<String, Value>, before: &Self) {
        let mut keep = |field: &str, value: Value| input.insert(field.to_owned(), value);
        keep("starts_at", serde_json::json!(before.starts_at));
        keep("expires_at", serde_json::json!(before.expires_at));
        keep("revoked_at", serde_json::json!(before.revoked_at));
        keep("ended_at", serde_json::json!(before.ended_at));
        keep("created_by", before.created_by.as_str().into());
    }

    fn add_derived(&self, state: &State, shown: &mut Map<String, Value>) {
        if let Value::Object(live) = serde_json::json!(self.live(state.now())) {
            shown.extend(live);
        }
    }

    fn shown_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(ExceptionLive::json_schema(generator))
    }
}

impl State {
    /// The exceptions of a device, in the order of their making.
    pub fn exceptions_of(&self, device: Id) -> impl Iterator<Item = &Exception> {
        self.exceptions.with_key(&ref_key(Device::NOUN, &device.to_string())).map(AsRef::as_ref)
    }

    /// The exception that keeps a device in quarantine, the one that lasts longest.
    pub fn quarantine_of(&self, device: Id, now: Timestamp) -> Option<&Exception> {
        self.exceptions_of(device)
            .filter(|exception| exception.r#type == ExceptionType::Quarantine && exception.is_active(now))
            .max_by_key(|exception| exception.expires_at)
    }
}
