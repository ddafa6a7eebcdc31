//! Certificate changes under a running server.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gateway_api::context::Api;
use gateway_api::serve::Limits;
use gateway_core::facts::Facts;
use gateway_ctl::tls::Origin;
use gateway_model::settings::Bootstrap;
use gateway_tests::wait::wait_ok;
use rcgen::{CertificateParams, KeyPair};
use tokio::signal::unix::{SignalKind, signal};

use crate::tls::SOON;
use crate::tls::peers::{hybrid, session, shown};
use crate::tls::testbed::Testbed;

fn paths(folder: &Path) -> (PathBuf, PathBuf) {
    (folder.join("own.pem"), folder.join("own.key"))
}

/// Writes a new certificate and its key.
fn issue(folder: &Path) {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
    let (certificate, secret) = paths(folder);
    fs::write(certificate, params.self_signed(&key).expect("signed").pem()).expect("written");
    fs::write(secret, key.serialize_pem()).expect("written");
}

fn hang_up() {
    nix::sys::signal::kill(nix::unistd::getpid(), nix::sys::signal::Signal::SIGHUP)
        .expect("a signal to ourselves");
}

/// Returns the configuration and the facts for the certificate.
fn known(api: &Arc<Api>) -> impl Fn() -> (Arc<Bootstrap>, Arc<Facts>) + use<> {
    let api = api.clone();
    move || (api.gateway.config(), api.gateway.facts())
}

#[test]
fn a_new_certificate_is_shown_without_a_restart_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    issue(folder.path());
    let (certificate, key) = paths(folder.path());
    let origin = Origin::Files { certificate: certificate.clone(), key };
    let testbed = Testbed::with(Limits::default(), |_| Some(origin));
    let follow = |testbed: &Testbed| {
        let _in_the_runtime = testbed.runtime.enter();
        let hangup = signal(SignalKind::hangup()).expect("a signal");
        gateway_api::tls::follow_files(known(&testbed.api), testbed.tls().clone(), hangup)
    };
    let following = testbed.runtime.spawn(follow(&testbed));
    let first = hybrid(&certificate);
    let standing = session(testbed.address, &first).expect("a session");
    let before = fs::read(&certificate).expect("the first certificate");
    issue(folder.path());
    // The reader may be between the two files now; it reads again by itself.
    hang_up();
    let second = hybrid(&certificate);
    let new = wait_ok(SOON, "the new certificate to be shown", || Ok(session(testbed.address, &second)?));
    let new = shown(&new.expect("shown"));
    assert_ne!(shown(&standing), new);
    session(testbed.address, &first).expect_err("the old certificate is not shown any more");

    fs::write(&certificate, "broken").expect("written");
    hang_up();
    let own = hybrid_of(&before, folder.path());
    wait_ok(SOON, "the fault to be reported", || {
        let status = testbed.tls().certificate().expect("a certificate");
        anyhow::ensure!(status.fault.as_deref().is_some_and(|fault| fault.contains("own.pem")), "{status:?}");
        Ok(())
    })
    .expect("reported");
    assert_eq!(shown(&session(testbed.address, &second).expect("the good one stays")), new);
    assert!(session(testbed.address, &own).is_err());
    let observed = gateway_tests::http::exchange(
        session(testbed.address, &second).expect("a session"),
        "GET",
        "localhost",
        "/api/v1/observer",
        &[],
        None,
    );
    let observed = crate::tls::testbed::json_of(&observed.expect("an answer"));
    let tls =
        observed["data"].as_array().expect("a list").iter().find(|item| item["subsystem"] == "tls").cloned();
    let tls = tls.expect("TLS is observed");
    assert!(tls["state"] == "degraded" && tls["message"].to_string().contains("own.pem"), "{tls}");
    following.abort();
}

/// Returns a client that trusts the certificate of these bytes.
fn hybrid_of(pem: &[u8], folder: &Path) -> std::sync::Arc<rustls::ClientConfig> {
    let path = folder.join("before.pem");
    fs::write(&path, pem).expect("written");
    hybrid(&path)
}

#[test]
fn without_a_certificate_clients_are_refused_until_there_is_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (certificate, key) = paths(folder.path());
    let origin = Origin::Files { certificate: certificate.clone(), key };
    let testbed = Testbed::with(Limits::default(), |_| Some(origin));
    let other = Testbed::secure();
    session(testbed.address, &hybrid(&other.authority())).expect_err("no certificate");
    issue(folder.path());
    let following = {
        let _in_the_runtime = testbed.runtime.enter();
        let hangup = signal(SignalKind::hangup()).expect("a signal");
        gateway_api::tls::follow_files(known(&testbed.api), testbed.tls().clone(), hangup)
    };
    let following = testbed.runtime.spawn(following);
    let config = hybrid(&certificate);
    wait_ok(SOON, "the certificate to be shown", || Ok(session(testbed.address, &config).map(drop)?))
        .expect("shown");
    following.abort();
}
