//! The daemon's own clients against OpenSSL as a server.

use gateway_ctl::tls::{Factory, PqMode};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::tls::peers::OpensslServer;
use crate::tls::testbed::Testbed;

#[test]
fn a_classic_server_is_spoken_to_unless_post_quantum_is_required() {
    let testbed = Testbed::secure();
    let authority = testbed.authority();
    let key = authority.with_file_name("key.pem");
    let factory = testbed.tls().factory.clone();
    let trusted: Vec<_> =
        CertificateDer::pem_file_iter(&authority).expect("file").map(|c| c.expect("PEM")).collect();
    let client = factory.client("webhook").with_authorities(trusted);
    for more in [[].as_slice(), &["-tls1_2"]] {
        let server = OpensslServer::start(&authority, &key, more);
        let talk = || {
            let client = client.clone();
            testbed.runtime.block_on(async move {
                let stream = TcpStream::connect(server.address).await.expect("a connection");
                let name = ServerName::try_from("localhost").expect("a name");
                let mut session = client.connect(name, stream).await?;
                session.write_all(b"GET / HTTP/1.0\r\n\r\n").await.expect("sent");
                let mut answer = String::new();
                // The server closes without close_notify.
                let _ = session.read_to_string(&mut answer).await;
                Ok::<_, gateway_ctl::tls::Error>(answer)
            })
        };
        for mode in [PqMode::Default, PqMode::Preferred] {
            testbed.set_mode(mode);
            assert!(talk().expect("an answer").contains("200 ok"));
            let report = json!({"name": "webhook", "last_group": "X25519", "pq": false});
            let clients = testbed.get("/pq-crypto")["clients"].clone();
            assert!(
                clients.as_array().is_some_and(|all| all.contains(&report)),
                "{mode} {more:?}: {clients}"
            );
        }
        let answer = testbed.set_mode(PqMode::Required);
        assert!(answer["warnings"].to_string().contains("webhook used X25519"), "{answer}");
        let error = talk().expect_err("refused");
        assert!(error.to_string().contains("post-quantum mode is `required`"), "{more:?}: {error}");
        assert!(error.is_post_quantum());
    }
}

#[test]
fn an_own_server_negotiates_the_hybrid_group_in_every_mode() {
    let testbed = Testbed::secure();
    let trusted: Vec<_> =
        CertificateDer::pem_file_iter(testbed.authority()).expect("file").map(|c| c.expect("PEM")).collect();
    for mode in [PqMode::Default, PqMode::Preferred, PqMode::Required] {
        let factory = Factory::new(mode);
        let client = factory.client("mesh").with_authorities(trusted.clone());
        testbed.runtime.block_on(async {
            let stream = TcpStream::connect(testbed.address).await.expect("a connection");
            client
                .connect(ServerName::try_from("localhost").expect("a name"), stream)
                .await
                .expect("a session");
        });
        let report = &factory.clients()[0];
        assert_eq!((report.last_group.as_deref(), report.pq), (Some("X25519MLKEM768"), true), "{mode}");
    }
}
