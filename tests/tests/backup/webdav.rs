//! lighttpd with its WebDAV module, over TLS and plain.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use gateway_tests::process::Process;
use gateway_tests::wait::wait_ok;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::{Value, json};

use crate::backup::SOON;
use crate::backup::every::{self, backups};
use crate::backup::folder::Small;
use crate::backup::testbed::Testbed;

const USER: &str = "gwbackup";
const PASSWORD: &str = "s3cret-of-the-dav-server";
/// User id of www-data in Debian.
const WWW_DATA: u32 = 33;

struct Server {
    address: SocketAddr,
    files: PathBuf,
    certificate: String,
    folder: tempfile::TempDir,
    _process: Process,
}

impl Server {
    fn start() -> Server {
        Self::with("", None)
    }

    fn with(more: &str, place: Option<&Path>) -> Server {
        let folder = tempfile::tempdir().expect("a folder");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), mode).expect("a mode");
        let root = place.map_or_else(|| folder.path().join("root"), Path::to_owned);
        let files = root.join("dav/gateway");
        fs::create_dir_all(&files).expect("a folder");
        for path in [&root, &root.join("dav"), &files] {
            chown(path, Some(WWW_DATA), Some(WWW_DATA)).expect("an owner");
        }
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).expect("a certificate");
        let pem = cert.pem();
        fs::write(folder.path().join("tls.pem"), pem.clone() + &signing_key.serialize_pem()).expect("a file");
        fs::write(folder.path().join("users"), format!("{USER}:{PASSWORD}\n")).expect("users");
        let port =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|l| l.local_addr()).expect("a port").port();
        let settings = format!(
            r#"server.modules = ("mod_auth", "mod_authn_file", "mod_webdav", "mod_openssl")
server.document-root = "{root}"
server.bind = "127.0.0.1"
server.port = {port}
server.username = "www-data"
server.groupname = "www-data"
server.upload-dirs = ("/tmp")
ssl.engine = "enable"
ssl.pemfile = "{folder}/tls.pem"
auth.backend = "plain"
auth.backend.plain.userfile = "{folder}/users"
auth.require = ("/" => ("method" => "basic", "realm" => "dav", "require" => "valid-user"))
webdav.activate = "enable"
{more}
"#,
            root = root.display(),
            folder = folder.path().display()
        );
        let file = folder.path().join("lighttpd.conf");
        fs::write(&file, settings).expect("a configuration");
        let mut command = Command::new("lighttpd");
        let log = fs::File::create(folder.path().join("log")).expect("a log");
        command.arg("-D").arg("-f").arg(&file).stderr(log);
        let process = Process::spawn(command).expect("lighttpd");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let server = Server { address, files, certificate: pem, folder, _process: process };
        wait_ok(SOON, "lighttpd to listen", || Ok(TcpStream::connect(address)?))
            .unwrap_or_else(|error| panic!("{error:#}\n{}", server.log()));
        server
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn target(&self) -> Value {
        self.target_at(self.address)
    }

    fn target_at(&self, address: SocketAddr) -> Value {
        json!({"type": "webdav", "url": format!("https://localhost:{}/dav/", address.port()), "username": USER,
            "secret": PASSWORD, "path": "gateway", "ca_certificate": self.certificate})
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_comes_and_the_oldest_go() {
    let server = Server::start();
    every::comes_and_goes(&server.target(), &server.files).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_missing_is_made() {
    let server = Server::start();
    let testbed = Testbed::new().await;
    let mut target = server.target();
    target["path"] = json!("gateway/below/this");
    testbed.configure(&target, json!({})).await;
    let made = testbed.backup().await;
    assert_eq!(backups(&server.files.join("below/this")), [made]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_refused() {
    let server = Server::start();
    let testbed = Testbed::new().await;
    let mut target = server.target();
    target["secret"] = json!("not-the-password");
    let message = every::fails(&testbed, &target, &server.files).await;
    assert!(message.contains("refuses the user or the secret (401"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_untrusted_certificate_is_refused() {
    let server = Server::start();
    let testbed = Testbed::new().await;
    let mut target = server.target();
    target["ca_certificate"] = json!("");
    let message = every::fails(&testbed, &target, &server.files).await;
    assert!(message.contains("certificate"), "{message}");
    target["ca_certificate"] = json!(Server::start().certificate);
    let message = every::fails(&testbed, &target, &server.files).await;
    assert!(message.contains("certificate"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_post_quantum_mode_holds_for_the_server() {
    // OpenSSL of Debian 12 has no hybrid key exchange.
    let server = Server::start();
    let testbed = Testbed::new().await;
    testbed.configure(&server.target(), json!({})).await;
    testbed.backup().await;
    let clients = testbed.get("/pq-crypto").await["clients"].clone();
    assert!(clients.as_array().expect("a list").iter().any(|client| client["name"] == "backup"), "{clients}");
    let mode = testbed.send("PUT", "/pq-crypto", Some(&json!({"mode": "required"}))).await;
    assert_eq!(mode.status, 200, "{}", mode.body);
    let hybrid = clients[0]["pq"] == true;
    let answer = testbed.run().await;
    if hybrid {
        assert_eq!(answer.status, 200, "{}", answer.body);
    } else {
        let message = answer.error(502, "upstream_failed");
        assert!(message.contains("post-quantum mode is `required`"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_or_foreign_folder_is_reported() {
    let small = Small::new("size=64k,mode=755");
    let server = Server::with("", Some(small.path()));
    let testbed = Testbed::new().await;
    every::fails(&testbed, &server.target(), &server.files).await;
    chown(&server.files, Some(0), Some(0)).expect("an owner");
    let message = every::fails(&testbed, &server.target(), &server.files).await;
    // This server answers so if it has no write permission.
    assert!(message.contains("500"), "{message}");
    let read_only = Server::with("webdav.is-readonly = \"enable\"", None);
    every::fails(&testbed, &read_only.target(), &read_only.files).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_breaks_leaves_no_backup() {
    let server = Server::start();
    every::breaks(&server.target(), |at| server.target_at(at), server.address, &server.files).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_left() {
    let server = Server::start();
    every::hangs(|at| server.target_at(at)).await;
    // Without TLS the response is missing.
    every::hangs(|at| {
        let mut target = server.target_at(at);
        target["url"] = json!(format!("http://{at}/dav/"));
        target["ca_certificate"] = json!("");
        target
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_reported() {
    let server = Server::start();
    let mut wrong = server.target();
    wrong["secret"] = json!("not-the-password");
    // The encoded form on the wire.
    let basic = ["Z3diYWNrdXA6czNjcmV0", "Z3diYWNrdXA6bm90LXRoZS"];
    let secrets = [PASSWORD, "not-the-password", basic[0], basic[1]];
    every::tells_no_secret(&server.target(), &wrong, &secrets).await;
}
