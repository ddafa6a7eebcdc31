//! Configuration and unit of a hub, for those who have no NATS server.
//!
//! Each gateway signs in with its own key and may do what its node permits: read the kinds that it is offered, publish
//! those that are taken from it. All other subjects are closed to it.

use std::fmt::Write;

use gateway_model::State;
use gateway_model::kinds::SyncKind;
use gateway_model::validated::PublicKey;

use super::nkey::user_nkey;
use super::publication::{STREAM, SUBJECT_PREFIX, subject};

/// Largest message that the hub takes, in bytes.
pub const MAX_PAYLOAD_BYTES: usize = 8 << 20;
/// Path of the configuration.
const FILE: &str = "/etc/gatewayd/federation-hub.conf";

/// Options of a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubOptions {
    /// Address and port.
    pub listen: String,
    /// Files of certificate and key in PEM; `None`: without TLS.
    pub tls: Option<(String, String)>,
}

/// Gateway that may sign in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    name: String,
    key: PublicKey,
    publishes: Vec<String>,
    reads: Vec<String>,
}

/// Returns the configuration of a hub for this gateway and its approved nodes.
pub fn configuration(state: &State, own_key: PublicKey, options: &HubOptions) -> String {
    let mut text =
        String::from("# Hub of the gateways' federation. Written by gatewayd: renew it when nodes change.\n");
    let listen = &options.listen;
    let _ = write!(text, "listen: \"{listen}\"\nmax_payload: {MAX_PAYLOAD_BYTES}\n");
    text.push_str("jetstream {\n  store_dir: \"/var/lib/gateway-federation-hub\"\n}\n");
    if let Some((certificate, key)) = &options.tls {
        let _ = write!(text, "tls {{\n  cert_file: \"{certificate}\"\n  key_file: \"{key}\"\n}}\n");
    }
    text.push_str("authorization {\n  users: [\n");
    for Member { name, key, publishes, reads } in members(state, own_key) {
        // A name cannot end its comment: control characters are refused in names.
        let _ = writeln!(text, "    # {name}");
        let _ = writeln!(text, "    {{ nkey: \"{}\", permissions: {{", user_nkey(key));
        let _ = writeln!(text, "      publish: {{ allow: [{}] }}", quoted(&publishes));
        let _ = writeln!(text, "      subscribe: {{ allow: [{}] }}", quoted(&reads));
        text.push_str("    } }\n");
    }
    text.push_str("  ]\n}\n");
    text
}

/// Returns the unit of systemd for the hub.
pub fn unit() -> String {
    format!(
        "[Unit]\nDescription=Hub of the gateways' federation (NATS with JetStream)\n\
         After=network-online.target\nWants=network-online.target\n\n\
         [Service]\nExecStart=/usr/sbin/nats-server -c {FILE}\nExecReload=/bin/kill -HUP $MAINPID\n\
         DynamicUser=yes\nStateDirectory=gateway-federation-hub\nRestart=always\nRestartSec=2\n\
         NoNewPrivileges=yes\nPrivateDevices=yes\nProtectHome=yes\nProtectSystem=strict\n\
         RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX\nSystemCallFilter=@system-service\n\n\
         [Install]\nWantedBy=multi-user.target\n"
    )
}

fn members(state: &State, own_key: PublicKey) -> Vec<Member> {
    let mut own_kinds: Vec<SyncKind> = Vec::new();
    let mut own_reads = vec![inbox(own_key)];
    let mut own_gets = Vec::new();
    let mut nodes = Vec::new();
    for node in state.nodes.iter().filter(|node| node.is_approved()) {
        let Some(key) = node.public_key else { continue };
        let (offered, received) = (node.offered_kinds(state), node.received_kinds(state));
        own_kinds.extend(&offered);
        own_reads.extend(received.iter().map(|kind| subject(*kind, key)));
        own_gets.extend(received.iter().map(|kind| last_of(&subject(*kind, key))));
        let reads = offered.iter().map(|kind| subject(*kind, own_key));
        let gets = offered.iter().map(|kind| last_of(&subject(*kind, own_key)));
        let own = own_subjects(key, &received);
        nodes.push(Member {
            name: node.name.clone(),
            key,
            publishes: own.into_iter().chain(gets).collect(),
            reads: std::iter::once(inbox(key)).chain(reads).collect(),
        });
    }
    own_kinds.sort();
    own_kinds.dedup();
    let publishes = own_subjects(own_key, &own_kinds).into_iter().chain(own_gets).collect();
    let own = Member { name: "this gateway".to_owned(), key: own_key, publishes, reads: own_reads };
    std::iter::once(own).chain(nodes).collect()
}

/// Returns what a gateway that publishes these kinds needs: their subjects, its last messages, and the stream.
fn own_subjects(key: PublicKey, kinds: &[SyncKind]) -> Vec<String> {
    if kinds.is_empty() {
        return Vec::new();
    }
    let subjects = kinds.iter().map(|kind| subject(*kind, key));
    let create = format!("$JS.API.STREAM.CREATE.{STREAM}");
    let last = format!("$JS.API.DIRECT.GET.{STREAM}.{SUBJECT_PREFIX}.*.{}", user_nkey(key));
    subjects.chain([last, create]).collect()
}

/// Returns the subject that asks for the last message of a subject.
pub fn last_of(subject: &str) -> String {
    format!("$JS.API.DIRECT.GET.{STREAM}.{subject}")
}

/// Returns the subjects of the replies to the gateway with this key.
pub fn inbox(key: PublicKey) -> String {
    format!("_INBOX.{}.>", user_nkey(key))
}

fn quoted(list: &[String]) -> String {
    list.iter().map(|text| format!("\"{text}\"")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use gateway_model::kinds::{Node, NodeStatus, SyncPolicy};

    use super::*;

    fn node(name: &str, key: u8, policy: SyncPolicy, role: &str) -> Node {
        Node {
            name: name.to_owned(),
            url: format!("https://{name}.example/"),
            public_key: Some(PublicKey([key; 32])),
            status: NodeStatus::Approved,
            role: role.to_owned(),
            sync_policy: policy,
            sync_resources: "devices,routing".to_owned(),
            allowed_receive_resources: "routing".to_owned(),
            ..Node::default()
        }
    }

    #[test]
    fn each_gateway_may_do_what_its_node_permits() {
        let mut state = State::new("2026-11-20T12:00:00Z".parse().unwrap());
        let branch = node("branch", 2, SyncPolicy::Push, "secondary");
        let center = node("center", 3, SyncPolicy::Pull, "primary");
        let pending = Node { status: NodeStatus::Pending, ..node("other", 4, SyncPolicy::Push, "secondary") };
        let mut draft = state.begin(state.now());
        for node in [branch, center, pending] {
            draft.create(node).unwrap();
        }
        state = draft;
        let own = PublicKey([1; 32]);
        let options = HubOptions { listen: "192.0.2.1:4222".into(), tls: None };
        let text = configuration(&state, own, &options);
        let key = |n: u8| user_nkey(PublicKey([n; 32]));
        let line_after = |key: &str, which: &str| {
            let rest = text.split_once(&format!("nkey: \"{key}\"")).unwrap().1;
            rest.lines().find(|line| line.trim_start().starts_with(which)).unwrap().to_owned()
        };
        let reads = line_after(&key(2), "subscribe");
        for kind in ["devices", "routing"] {
            assert!(reads.contains(&format!("\"gwfed.{kind}.{}\"", key(1))), "{reads}");
        }
        let publishes = line_after(&key(2), "publish");
        assert!(!publishes.contains("\"gwfed.") && !publishes.contains("STREAM.CREATE"), "{publishes}");
        let publishes = line_after(&key(3), "publish");
        assert!(publishes.contains(&format!("\"gwfed.routing.{}\"", key(3))), "{publishes}");
        assert!(!publishes.contains("\"gwfed.devices.") && !publishes.contains(&key(1)), "{publishes}");
        assert!(line_after(&key(1), "subscribe").contains(&format!("gwfed.routing.{}", key(3))));
        assert!(!text.contains(&key(4)) && !text.contains("tls"), "{text}");
        let tls = Some(("/etc/hub.pem".to_owned(), "/etc/hub.key".to_owned()));
        assert!(
            configuration(&state, own, &HubOptions { tls, ..options })
                .contains("cert_file: \"/etc/hub.pem\"")
        );
    }
}
