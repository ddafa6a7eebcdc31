//! Roles of peers: the rights of each on kinds of objects.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::capability::Capability;
use crate::edit::EditError;
use crate::id_or_name::{keep_builtin, keep_name};
use crate::problem::{Problems, code};
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;
use crate::validated::{check_free_text, check_slug, text_enum};

text_enum! {
    /// Kinds of objects that peers exchange.
    pub enum SyncKind {
        Routing = "routing",
        Dns = "dns",
        Devices = "devices",
        DeviceGroups = "device_groups",
        Profiles = "profiles",
        Chains = "chains",
        PrivacyClasses = "privacy_classes",
        TrustClasses = "trust_classes",
        Exceptions = "exceptions",
        Tunnels = "tunnels",
        Proxies = "proxies",
        Alerts = "alerts",
        Dhcp = "dhcp",
    }
}

impl SyncKind {
    /// Returns the collections of the kind. Rules of alerts are built in everywhere, and an exception belongs to the time
    /// and the gateway that it was made for: neither is synced.
    pub const fn collections(self) -> &'static [&'static str] {
        match self {
            SyncKind::Routing => &["routing_policies"],
            SyncKind::Dns => &[
                "dns_filter_rules",
                "dns_zones",
                "dns_records",
                "dns_forwarders",
                "dns_rewrites",
                "dns_allowlist",
                "dns_blocklist",
                "dns_presets",
                "threat_feeds",
            ],
            SyncKind::Devices => &["devices"],
            SyncKind::DeviceGroups => &["device_groups"],
            SyncKind::Profiles => &["profiles"],
            SyncKind::Chains => &["chains"],
            SyncKind::PrivacyClasses => &["privacy_classes"],
            SyncKind::TrustClasses => &["trust_classes"],
            SyncKind::Tunnels => &["tunnels"],
            SyncKind::Proxies => &["proxies"],
            SyncKind::Dhcp => &["dhcp_reservations"],
            SyncKind::Exceptions | SyncKind::Alerts => &[],
        }
    }
}

/// Rights of a peer on objects of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Permission {
    pub kind: SyncKind,
    /// It may send its objects to this gateway.
    #[serde(default)]
    pub push: bool,
    /// It may fetch the objects of this gateway.
    #[serde(default)]
    pub pull: bool,
    /// It may approve objects that wait for it.
    #[serde(default)]
    pub approve: bool,
}

/// A role. Nodes name it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FederationRole {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    /// a-z, 0-9, _ and -.
    pub name: String,
    pub description: String,
    /// Rights of the role. A kind that is not listed is not permitted.
    pub permissions: Vec<Permission>,
    /// Came with the service: cannot be changed or deleted.
    #[schemars(extend("readOnly" = true))]
    pub builtin: bool,
}

impl FederationRole {
    /// Role of a node that names none: it can do the least.
    pub const DEFAULT: &'static str = "observer";

    /// Returns the rights on a kind. `None` if the role permits nothing with it.
    pub fn permission(&self, kind: SyncKind) -> Option<&Permission> {
        self.permissions.iter().find(|permission| permission.kind == kind)
    }
}

impl Resource for FederationRole {
    const NOUN: &'static str = "federation_role";
    const COLLECTION: &'static str = "federation_roles";
    const READ_ONLY: &'static [&'static str] = &["builtin"];
    const REQUIRED: &'static [&'static str] = &["name"];

    fn label(&self) -> &str {
        &self.name
    }

    fn builtin(now: Timestamp) -> Vec<FederationRole> {
        builtin(now)
    }

    fn alias(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn validate(&self, _state: &State, problems: &mut Problems) {
        check_slug("name", &self.name, problems);
        check_free_text("description", &self.description, 1000, problems);
        for (index, permission) in self.permissions.iter().enumerate() {
            let path = format!("permissions[{index}]");
            if self.permissions[..index].iter().any(|before| before.kind == permission.kind) {
                let message = format!("The kind {} is given twice.", permission.kind);
                problems.add(code::DUPLICATE, format!("{path}.kind"), message);
            }
            if !(permission.push || permission.pull || permission.approve) {
                problems.warn(
                    path,
                    format!("It permits nothing with {}, as if it were not listed.", permission.kind),
                );
            }
        }
        problems.lacks("", Capability::Federation);
    }

    fn admit(&self, before: Option<&Self>, state: &State) -> Result<(), EditError> {
        keep_name(self, before, self.builtin, state)?;
        match before {
            Some(before) if before.builtin && self != before => Err(EditError::Protected {
                resource_type: Self::NOUN,
                id: before.meta.id,
                message: format!("The built-in role {} cannot be changed; make another one.", before.name),
            }),
            _ => Ok(()),
        }
    }

    fn admit_delete(&self, _state: &State) -> Result<(), EditError> {
        keep_builtin(self, self.builtin)
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", self.name.as_str());
    }

    fn carry_over(input: &mut Map<String, Value>, before: &Self) {
        input.insert("builtin".into(), before.builtin.into());
    }
}

fn builtin(now: Timestamp) -> Vec<FederationRole> {
    let role = |slot, name: &str, description: &str, push, pull, approve| {
        let permission = |kind: &SyncKind| Permission { kind: *kind, push, pull, approve };
        FederationRole {
            meta: Meta::builtin(4, slot, now),
            name: name.to_owned(),
            description: description.to_owned(),
            permissions: SyncKind::ALL.iter().map(permission).collect(),
            builtin: true,
        }
    };
    vec![
        role(1, "primary", "Leads: sends its objects here and approves.", true, true, true),
        role(2, "secondary", "Follows: fetches the objects of this gateway.", false, true, false),
        FederationRole {
            permissions: Vec::new(),
            ..role(
                3,
                FederationRole::DEFAULT,
                "Sees that this gateway is there, and none of its objects.",
                false,
                false,
                false,
            )
        },
    ]
}
