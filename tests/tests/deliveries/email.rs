//! Mail about alerts, to a mail server with TLS at once or by STARTTLS.

use std::fs;

use gateway_tests::certificate::ServerCertificate;
use gateway_tests::mail_server::{Encryption, MailServer};
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use super::SOON;
use super::testbed::{Testbed, idle};

const PASSWORD: &str = "s3cret-of-the-mailbox";

fn certificate() -> ServerCertificate {
    ServerCertificate::issue(&["localhost"]).expect("a certificate")
}

fn configure(testbed: &Testbed, server: &MailServer, security: &str, certificate: &ServerCertificate) {
    let authority = fs::read_to_string(certificate.file()).expect("a certificate");
    let config = json!({"enabled": true, "host": "localhost", "port": server.address.port(), "security": security,
        "ca_certificate": authority, "username": "gateway", "password": PASSWORD, "from": "gw@example.net",
        "to": ["anna@example.net", "ben@example.net"]});
    let (status, body) = testbed.send("PUT", "/alerts/email", Some(&config));
    assert_eq!(status, 200, "{body}");
    assert!(!body.to_string().contains(PASSWORD), "{body}");
}

fn test(testbed: &Testbed) -> Value {
    let (status, body) = testbed.send("POST", "/alerts/email/test", None);
    assert_eq!(status, 200, "{body}");
    body["data"].clone()
}

#[test]
fn mails_say_what_begins_and_what_ends() {
    for (encryption, security) in [(Encryption::Starttls, "starttls"), (Encryption::AtOnce, "tls")] {
        let certificate = certificate();
        let server = MailServer::start(encryption, &certificate).expect("a mail server");
        let testbed = Testbed::new();
        configure(&testbed, &server, security, &certificate);
        testbed.raise("köln");
        testbed.resolve("köln");
        let mails = wait_ok(SOON, "two mails", || {
            let mails = server.mails();
            anyhow::ensure!(mails.len() == 2, "{mails:?}");
            Ok(mails)
        })
        .expect("mails");
        idle(&testbed);
        let first = &mails[0];
        assert_eq!(first.login, Some(("gateway".to_owned(), PASSWORD.to_owned())));
        assert_eq!((first.from.as_str(), first.to.len()), ("gw@example.net", 2));
        assert!(first.text.contains("To: anna@example.net, ben@example.net\r\n"), "{}", first.text);
        assert!(
            first.text.contains("Subject: [") && first.text.contains("Kind: tunnel_down"),
            "{}",
            first.text
        );
        assert!(mails[1].text.contains("Resolved: "), "{}", mails[1].text);
        let clients = testbed.get("/pq-crypto")["clients"].to_string();
        assert!(clients.contains("alert mail"), "{clients}");
    }
}

#[test]
fn nothing_is_sent_without_encryption_or_with_an_unknown_certificate() {
    let certificate = certificate();
    let plain = MailServer::start(Encryption::Never, &certificate).expect("a mail server");
    let testbed = Testbed::new();
    let (status, body) = testbed.send("POST", "/alerts/email/test", None);
    assert_eq!((status, &body["error"]["code"]), (409, &json!("invalid_state")), "{body}");
    configure(&testbed, &plain, "starttls", &certificate);
    let result = test(&testbed);
    assert!(result["error"].as_str().is_some_and(|error| error.contains("STARTTLS")), "{result}");
    let other = MailServer::start(Encryption::Starttls, &certificate).expect("a mail server");
    configure(&testbed, &other, "starttls", &self::certificate());
    let result = test(&testbed);
    assert!(result["error"].as_str().is_some_and(|error| error.contains("certificate")), "{result}");
    assert_eq!((result["delivered"].clone(), plain.mails().len(), other.mails().len()), (json!(false), 0, 0));
}

#[test]
fn a_mail_that_is_refused_for_now_is_sent_again_and_one_that_is_refused_for_good_is_not() {
    let certificate = certificate();
    let server = MailServer::start(Encryption::AtOnce, &certificate).expect("a mail server");
    let testbed = Testbed::new();
    configure(&testbed, &server, "tls", &certificate);
    server.refuse_next("554 no such mailbox");
    testbed.raise("a");
    idle(&testbed);
    server.refuse_next("451 try later");
    testbed.raise("b");
    let mails = wait_ok(SOON, "the mail", || {
        let mails = server.mails();
        anyhow::ensure!(!mails.is_empty());
        Ok(mails)
    })
    .expect("the mail");
    assert!(mails[0].text.contains("Tunnel down: b"), "{}", mails[0].text);
    assert_eq!(mails.len(), 1);
}
