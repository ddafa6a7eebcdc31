//! Registration of a node.

use serde::{Deserialize, Serialize};

use super::{HostInfo, null_as_default};
use crate::keys::NodeKey;

/// A request to admit a node, to renew its key, or to end it.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RegisterRequest {
    /// Version of the protocol.
    pub version: u32,
    pub node_key: NodeKey,
    /// The key that `node_key` replaces.
    pub old_node_key: NodeKey,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<RegisterAuth>,
    /// The URL of a login whose end the client waits for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub followup: String,
    /// End of the key of the node. One in the past ends the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiry: Option<jiff::Timestamp>,
    #[serde(alias = "HostInfo", deserialize_with = "null_as_default")]
    pub hostinfo: HostInfo,
    /// True if the node shall be removed once it is gone.
    pub ephemeral: bool,
}

/// The proof that a node may register. It has no `Debug`: the key is a secret.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RegisterAuth {
    pub auth_key: Option<String>,
}

/// The answer to a registration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RegisterResponse {
    #[serde(skip_deserializing)]
    pub user: User,
    #[serde(skip_deserializing)]
    pub login: Login,
    pub node_key_expired: bool,
    pub machine_authorized: bool,
    /// URL at which a person logs in. Empty: none is needed.
    #[serde(rename = "AuthURL")]
    pub auth_url: String,
    /// Reason of a refusal.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// The owner of nodes. A gateway has one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct User {
    #[serde(rename = "ID")]
    pub id: u64,
    pub display_name: String,
}

/// The account of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Login {
    #[serde(rename = "ID")]
    pub id: u64,
    pub provider: String,
    pub login_name: String,
    pub display_name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_kinds_of_clients_are_read() {
        for name in ["Hostinfo", "HostInfo"] {
            let text = format!(
                r#"{{"Version":130,"NodeKey":"nodekey:{}","OldNodeKey":"","Auth":{{"AuthKey":"k"}},
                    "Expiry":"0001-01-01T00:00:00Z","{name}":{{"OS":"linux","Hostname":"a","RoutableIPs":null}}}}"#,
                "01".repeat(32)
            );
            let request: RegisterRequest = serde_json::from_str(&text).expect("a request");
            assert_eq!((request.node_key, request.old_node_key), (NodeKey([1; 32]), NodeKey::default()));
            assert_eq!(request.auth.and_then(|auth| auth.auth_key).as_deref(), Some("k"));
            assert_eq!((request.hostinfo.os.as_str(), request.hostinfo.hostname.as_str()), ("linux", "a"));
        }
    }
}
