//! The post-quantum modes as API clients see them.

use gateway_ctl::tls::PqMode;
use rustls::NamedGroup;
use serde_json::{Value, json};

use crate::tls::peers::{classic, group, https, hybrid, keep_asking, openssl_client, session, stderr};
use crate::tls::testbed::{Testbed, json_of};

const MODES: [PqMode; 3] = [PqMode::Default, PqMode::Preferred, PqMode::Required];

#[test]
fn openssl_as_a_classic_client_is_served_unless_post_quantum_is_required() {
    let testbed = Testbed::secure();
    let authority = testbed.authority();
    for mode in MODES {
        testbed.set_mode(mode);
        for more in [[].as_slice(), &["-tls1_2"]] {
            let output = openssl_client(testbed.address, &authority, more);
            let said = stderr(&output);
            assert_eq!(output.status.success(), mode != PqMode::Required, "{mode} {more:?}: {said}");
            if mode == PqMode::Required {
                assert!(
                    said.contains("alert handshake failure") || said.contains("alert protocol version"),
                    "{said}"
                );
            } else {
                assert!(said.contains("Verification: OK"), "{said}");
            }
        }
    }
    let seen = testbed.get("/pq-crypto")["inbound"].clone();
    assert_eq!(seen["refused"], 2, "{seen}");
    assert!(seen["sessions"]["X25519"].as_u64().is_some_and(|count| count >= 4), "{seen}");
}

#[test]
fn a_hybrid_client_agrees_on_the_hybrid_group_in_every_mode() {
    let testbed = Testbed::secure();
    for mode in MODES {
        testbed.set_mode(mode);
        let session = session(testbed.address, &hybrid(&testbed.authority())).expect("a session");
        assert_eq!(group(&session), NamedGroup::X25519MLKEM768, "{mode}");
    }
}

#[test]
fn an_open_session_outlives_the_change_and_the_next_one_is_refused() {
    let testbed = Testbed::secure();
    let config = classic(&testbed.authority());
    let mut standing = session(testbed.address, &config).expect("a classic session");
    assert_eq!(group(&standing), NamedGroup::X25519);
    keep_asking(&mut standing, "/version").expect("an answer");
    let answer = testbed.set_mode(PqMode::Required);
    let warnings = answer["warnings"].as_array().expect("who is left out");
    assert_eq!(warnings[0]["path"], "inbound.sessions", "{answer}");
    let shown = keep_asking(&mut standing, "/pq-crypto").expect("the session goes on");
    assert_eq!(shown["data"]["mode"], "required");
    // The client also holds a session ticket of the old mode.
    let refused = session(testbed.address, &config).expect_err("no classic session");
    assert!(refused.to_string().contains("HandshakeFailure"), "{refused}");
    keep_asking(&mut standing, "/version").expect("the session goes on");
    testbed.set_mode(PqMode::Default);
    session(testbed.address, &config).expect("classic again");
}

#[test]
fn the_row_shows_mode_and_curves_and_refuses_what_is_no_mode() {
    let testbed = Testbed::secure();
    let before = testbed.get("/pq-crypto");
    assert_eq!((&before["mode"], &before["curves"][0]), (&json!("default"), &json!("X25519MLKEM768")));
    for (body, rule) in
        [(json!({"mode": "hybrid"}), "enum"), (json!({}), "required"), (json!({"mode": 1}), "type")]
    {
        let response = testbed.request("PUT", "/pq-crypto", Some(&body));
        let error = json_of(&response)["error"].clone();
        assert_eq!((response.status, &error["code"]), (422, &json!("validation_failed")), "{error}");
        assert_eq!(error["details"]["fields"][0]["path"], "mode", "{rule}: {error}");
    }
    assert_eq!(testbed.get("/pq-crypto")["mode"], "default");
    // The output of a GET is a valid PUT.
    let mut edited = before.clone();
    edited["mode"] = json!("required");
    let response = testbed.request("PUT", "/pq-crypto", Some(&edited));
    let answer = json_of(&response);
    assert_eq!((response.status, answer.get("warnings")), (200, None), "{answer}");
    let curves: Value = json!(["X25519MLKEM768", "SecP256r1MLKEM768"]);
    assert_eq!((&answer["data"]["curves"], &answer["data"]["supported"]), (&curves, &before["supported"]));
    let audit = testbed.get("/audit?limit=1")[0].clone();
    assert_eq!((&audit["action"], &audit["result"]), (&json!("replace_pq_crypto"), &json!("success")));
}

#[test]
fn a_mode_changed_by_an_import_is_obeyed() {
    let testbed = Testbed::secure();
    let open = testbed.api.open().expect("open");
    let task = testbed.runtime.spawn(gateway_api::tls::follow_store(open.tls.clone(), open.store.clone()));
    let ticket = gateway_ctl::store::AuditTicket::system("import_config", "config");
    let edit = |draft: &mut gateway_model::State| {
        draft.set(PqMode::KEY, json!("required"));
        Ok::<(), std::convert::Infallible>(())
    };
    open.store.commit(ticket, edit).expect("stored");
    gateway_tests::wait::wait_for(crate::tls::SOON, "the mode", || {
        open.tls.factory.mode() == PqMode::Required
    })
    .expect("obeyed");
    assert!(https(testbed.address, &classic(&testbed.authority()), "GET", "/version", None).is_err());
    task.abort();
}
