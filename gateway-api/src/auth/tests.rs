//! Tests of identification.

use std::net::SocketAddr;

use gateway_ctl::store::{AuditTicket, Session};
use gateway_model::Secret;
use gateway_model::kinds::{ApiKey, User};

use super::*;

struct Fixture {
    _folder: tempfile::TempDir,
    gateway: Gateway,
    auth: Auth,
}

impl Fixture {
    fn new(enabled: bool) -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        let gateway = Gateway::detached(folder.path()).expect("a fresh store");
        let configured = bootstrap::ApiKey {
            name: "script".into(),
            key: Secret::new("configured-key-0123456789"),
            role: Role::Operator,
        };
        let local_net = "192.0.2.0/24".parse().expect("a network");
        let settings = Settings { enabled, local_net, api_keys: vec![configured], setup_folder: None };
        let auth = Auth::new(&settings, &gateway);
        Fixture { _folder: folder, gateway, auth }
    }

    fn store(&self) -> &Store {
        store(&self.gateway).expect("open")
    }

    fn key(&self, edit: impl FnOnce(&mut ApiKey)) -> String {
        let fresh = api_key::generate().expect("a key");
        let mut row = ApiKey {
            name: fresh.prefix.clone(),
            prefix: fresh.prefix.clone(),
            key_hash: fresh.hash.clone(),
            role: Role::Diagnostics,
            ..ApiKey::default()
        };
        edit(&mut row);
        let ticket = AuditTicket::system("create_api_key", "api_key");
        self.store().commit(ticket, |draft| draft.create(row)).expect("stored");
        fresh.text.expose().to_owned()
    }

    fn session(&self) -> String {
        let user = User {
            username: "anna".into(),
            role: Role::Viewer,
            password_hash: Secret::new("x"),
            ..User::default()
        };
        let ticket = || AuditTicket::system("login", "session");
        let (user, _) = self.store().commit(ticket(), |draft| draft.create(user)).expect("stored");
        let session = Session::new(user.meta.id, 0, self.store().clock().now(), None, None);
        let token = self.auth.signer.sign(&session).expect("signed");
        self.store().open_session(ticket(), session).expect("stored");
        token
    }

    fn ask(&self, method: &str, from: &str, headers: &[(&str, &str)]) -> Identity {
        let mut request = http::Request::builder().method(method).uri("/api/v1/status");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let parts = request.body(()).expect("a request").into_parts().0;
        let peer = match from {
            "socket" => Peer::Local,
            ip => {
                Peer::Remote { address: SocketAddr::new(ip.parse().expect("an address"), 4711), tls: false }
            }
        };
        self.auth.identify(&self.gateway, &parts, Some(&peer))
    }

    fn proof(&self, method: &str, from: &str, headers: &[(&str, &str)]) -> Proof {
        self.ask(method, from, headers).actor.proof
    }
}

const OUTSIDE: &str = "203.0.113.9";
const LOCAL: &str = "192.0.2.9";

#[test]
fn with_sign_in_off_everybody_is_admin_and_the_socket_is_the_system() {
    let site = Fixture::new(false);
    let actor = site.ask("POST", OUTSIDE, &[("authorization", "Bearer nonsense")]).actor;
    assert_eq!((actor.proof, actor.role, actor.name.as_str()), (Proof::Open, Role::Admin, "admin"));
    for site in [site, Fixture::new(true)] {
        let actor = site.ask("POST", "socket", &[]).actor;
        assert_eq!((actor.proof, actor.role, actor.name.as_str()), (Proof::System, Role::Admin, "system"));
        assert_eq!(actor.payer(), None);
    }
}

#[test]
fn the_local_network_reads_and_does_nothing_else() {
    let site = Fixture::new(true);
    for method in ["GET", "HEAD", "OPTIONS"] {
        let actor = site.ask(method, LOCAL, &[]).actor;
        assert_eq!((actor.proof, actor.role), (Proof::Localnet, Role::Admin), "{method}");
        assert_eq!(site.proof(method, "::ffff:192.0.2.9", &[]), Proof::Localnet, "{method}");
        assert_eq!(site.proof(method, OUTSIDE, &[]), Proof::None, "{method}");
    }
    for method in ["POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT"] {
        assert_eq!(site.proof(method, LOCAL, &[]), Proof::None, "{method}");
    }
    for header in ["Forwarded", "X-Forwarded-For", "X-Real-IP"] {
        assert_eq!(site.proof("GET", LOCAL, &[(header, "192.0.2.1")]), Proof::None, "{header}");
        assert_eq!(site.proof("GET", OUTSIDE, &[(header, "192.0.2.1")]), Proof::None, "{header}");
    }
}

#[tokio::test]
async fn keys_and_sessions_identify_their_owner() {
    let site = Fixture::new(true);
    let bearer = |key: &str| format!("Bearer {key}");
    let actor = site.ask("POST", OUTSIDE, &[("authorization", "bearer configured-key-0123456789")]).actor;
    assert_eq!(
        (actor.proof, actor.role, actor.name.as_str()),
        (Proof::ConfiguredKey(0), Role::Operator, "script")
    );
    let key = site.key(|_| {});
    let actor = site.ask("POST", OUTSIDE, &[("authorization", &bearer(&key))]).actor;
    assert!(matches!(actor.proof, Proof::Key(_)) && actor.role == Role::Diagnostics, "{actor:?}");
    let cookie = format!("gw_session={}", site.session());
    let actor = site.ask("POST", OUTSIDE, &[("cookie", &cookie)]).actor;
    assert!(matches!(actor.proof, Proof::Session(_)) && actor.role == Role::Viewer, "{actor:?}");
    assert_eq!(actor.name, "anna");
    let both = site.ask("GET", LOCAL, &[("cookie", &cookie), ("authorization", &bearer(&key))]).actor;
    assert!(matches!(both.proof, Proof::Key(_)), "a key is meant, a cookie comes along");
}

#[test]
fn a_wrong_key_is_refused_even_where_none_is_needed() {
    let site = Fixture::new(true);
    let code = |from: &str, key: &str| {
        let identity = site.ask("GET", from, &[("authorization", &format!("Bearer {key}"))]);
        assert_eq!(identity.actor.proof, Proof::None, "{key}");
        identity.refusal.map(|error| error.message)
    };
    for wrong in ["x", "configured-key-012345678", "gw_00000000_0000", "gw__", ""] {
        assert_eq!(code(LOCAL, wrong).as_deref(), Some("The API key is not valid."), "{wrong:?}");
    }
    let key = site.key(|_| {});
    let altered = format!("{}0", &key[..key.len() - 1]);
    if altered != key {
        assert!(code(OUTSIDE, &altered).is_some());
    }
    let bound = site.key(|key| key.cidrs = vec!["198.51.100.0/24".parse().expect("a network")]);
    assert_eq!(code(OUTSIDE, &bound).as_deref(), Some("The API key may not be used from this address."));
    assert!(matches!(
        site.proof("GET", "198.51.100.7", &[("authorization", &format!("Bearer {bound}"))]),
        Proof::Key(_)
    ));
}

#[tokio::test]
async fn a_session_that_is_over_counts_as_none_and_is_distinguished() {
    let site = Fixture::new(true);
    let cookie = format!("gw_session={}", site.session());
    let id = site.store().sessions()[0].id;
    let actor = site.ask("GET", OUTSIDE, &[("cookie", &cookie)]).actor;
    assert!(site.auth.holds(&site.gateway, &actor));
    site.store().close_sessions(AuditTicket::system("revoke_session", "session"), &[id]).expect("closed");
    assert!(!site.auth.holds(&site.gateway, &actor), "a stream of it ends");
    let identity = site.ask("GET", OUTSIDE, &[("cookie", &cookie)]);
    assert_eq!(identity.actor.proof, Proof::None);
    assert_eq!(identity.refusal.map(|error| error.code), Some(Code::SessionExpired));
    let local = site.ask("GET", LOCAL, &[("cookie", &cookie)]);
    assert_eq!(local.actor.proof, Proof::None, "it never falls through to the right to read");
    assert_eq!(local.refusal.map(|error| error.code), Some(Code::SessionExpired));
    assert_eq!(site.proof("GET", LOCAL, &[]), Proof::Localnet);
    assert!(site.ask("GET", OUTSIDE, &[]).refusal.is_none());
}

#[test]
fn only_callers_without_a_credential_pay_by_address_and_the_host_itself_does_not_while_sign_in_is_off() {
    let off = Fixture::new(false);
    assert_eq!(off.ask("GET", "127.0.0.1", &[]).actor.payer(), None);
    assert_eq!(off.ask("GET", "::1", &[]).actor.payer(), None);
    assert!(matches!(off.ask("GET", OUTSIDE, &[]).actor.payer(), Some(QuotaOwner::Address(_))));
    let on = Fixture::new(true);
    assert!(matches!(on.ask("GET", "127.0.0.1", &[]).actor.payer(), Some(QuotaOwner::Address(_))));
    let keyed = on.ask("GET", OUTSIDE, &[("authorization", "Bearer configured-key-0123456789")]);
    assert_eq!(keyed.actor.payer(), Some(QuotaOwner::ConfiguredKey(0)));
}

#[test]
fn without_a_store_only_configured_keys_and_the_local_network_count() {
    let mut site = Fixture::new(true);
    let key = site.key(|_| {});
    site.gateway =
        Gateway::Blocked { reason: "damaged".into(), cause: "store_unusable", file: Default::default() };
    assert_eq!(site.proof("GET", OUTSIDE, &[("authorization", &format!("Bearer {key}"))]), Proof::None);
    assert_eq!(site.proof("GET", LOCAL, &[]), Proof::Localnet);
    let configured = [("authorization", "Bearer configured-key-0123456789")];
    assert_eq!(site.proof("GET", OUTSIDE, &configured), Proof::ConfiguredKey(0));
}
