//! OpenSSH server with its own configuration, keys and users. It does not touch the machine's own configuration.

use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use gateway_tests::process::Process;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::backup::SOON;
use crate::backup::every::{self, backups};
use crate::backup::folder::Small;
use crate::backup::testbed::Testbed;

const USER: &str = "gwbackup";
const UID: u32 = 61234;
const PASSWORD: &str = "s3cret-of-the-sftp-server";

/// An sshd in a mount namespace with its own users.
struct Server {
    address: SocketAddr,
    home: PathBuf,
    key: String,
    folder: tempfile::TempDir,
    _process: Process,
}

impl Server {
    fn start() -> Server {
        Self::with("", None)
    }

    /// Starts a server with additional configuration lines and another folder for the files.
    fn with(more: &str, place: Option<&Path>) -> Server {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("a mode");
        let home = place.map_or_else(|| folder.path().join("home"), Path::to_owned);
        fs::create_dir_all(&home).expect("a home");
        chown(&home, Some(UID), Some(UID)).expect("an owner");
        let file = |name: &str| folder.path().join(name);
        for (name, kind) in [("host", "ed25519"), ("client", "ed25519")] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", kind, "-N", "", "-C", "test", "-f"])
                .arg(file(name))
                .status()
                .expect("ssh-keygen");
            assert!(made.success());
        }
        let hash = Command::new("openssl").args(["passwd", "-6", PASSWORD]).output().expect("openssl").stdout;
        let hash = String::from_utf8(hash).expect("text");
        let line = |file: &str, line: &str| {
            fs::read_to_string(file).expect("the machine's own").trim_end().to_owned() + "\n" + line + "\n"
        };
        let passwd = format!("{USER}:x:{UID}:{UID}::{}:/bin/sh", home.display());
        fs::write(file("passwd"), line("/etc/passwd", &passwd)).expect("users");
        let shadow = format!("{USER}:{}:19000:0:99999:7:::", hash.trim());
        fs::write(file("shadow"), line("/etc/shadow", &shadow)).expect("passwords");
        fs::copy(file("client.pub"), file("authorized")).expect("a key");
        let port =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|l| l.local_addr()).expect("a port").port();
        let settings = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nPidFile none\nUsePAM no\nPasswordAuthentication yes\n\
             AuthorizedKeysFile {}\nStrictModes no\nSubsystem sftp internal-sftp\nMaxStartups 100\n{more}\n",
            file("host").display(),
            file("authorized").display()
        );
        fs::write(file("sshd_config"), settings).expect("a configuration");
        // The user files are mounted over the system's ones in the namespace of this sshd only, so the system is not
        // changed.
        let script = format!(
            "mount --bind {0}/passwd /etc/passwd && mount --bind {0}/shadow /etc/shadow && mount -t tmpfs tmpfs /run && \
             mkdir -p -m 755 /run/sshd && exec /usr/sbin/sshd -D -e -f {0}/sshd_config 2>{0}/log",
            folder.path().display()
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
        let process = Process::spawn(command).expect("unshare");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let key = fs::read_to_string(file("host.pub")).expect("the host's key");
        let server = Server { address, home, key, folder, _process: process };
        wait_ok(SOON, "sshd to listen", || Ok(TcpStream::connect(address)?))
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
        json!({"type": "sftp", "url": format!("sftp://{address}"), "username": USER, "secret": PASSWORD,
            "path": self.home, "host_key": self.key})
    }

    fn private_key(&self) -> String {
        fs::read_to_string(self.folder.path().join("client")).expect("the client's key")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_comes_and_the_oldest_go() {
    let server = Server::start();
    every::comes_and_goes(&server.target(), &server.home).await;
    let mode =
        fs::metadata(server.home.join(&backups(&server.home)[0])).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_key_signs_in_and_the_home_folder_is_where_relative_paths_begin() {
    let server = Server::with("PasswordAuthentication no\nKbdInteractiveAuthentication no", None);
    fs::create_dir(server.home.join("deep")).expect("a folder");
    chown(server.home.join("deep"), Some(UID), Some(UID)).expect("an owner");
    let testbed = Testbed::new().await;
    let mut target = server.target();
    target["secret"] = Value::Null;
    target["private_key"] = json!(server.private_key());
    target["path"] = json!("deep");
    let shown = Command::new("ssh-keygen")
        .args(["-l", "-f"])
        .arg(server.folder.path().join("host.pub"))
        .output()
        .expect("ssh-keygen")
        .stdout;
    // The other format of the host key.
    target["host_key"] = json!(String::from_utf8_lossy(&shown).split(' ').nth(1).expect("a fingerprint"));
    testbed.configure(&target, json!({})).await;
    let made = testbed.backup().await;
    assert_eq!(backups(&server.home.join("deep")), [made]);
    assert!(!testbed.get("/backup/config").await.to_string().contains("PRIVATE KEY"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_or_key_is_refused() {
    let server = Server::start();
    let testbed = Testbed::new().await;
    let mut target = server.target();
    target["secret"] = json!("not-the-password");
    let message = every::fails(&testbed, &target, &server.home).await;
    assert!(message.contains("refuses the user or the secret (password)"), "{message}");
    let other = Server::start();
    target["private_key"] = json!(other.private_key());
    let message = every::fails(&testbed, &target, &server.home).await;
    assert!(message.contains("refuses the user or the secret (private key)"), "{message}");
    target["private_key"] =
        json!("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----");
    let message = every::fails(&testbed, &target, &server.home).await;
    assert!(message.contains("cannot be read"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_another_host_key_learns_nothing() {
    let (server, other) = (Server::start(), Server::start());
    let testbed = Testbed::new().await;
    let mut target = server.target();
    target["host_key"] = json!(other.key);
    let message = every::fails(&testbed, &target, &server.home).await;
    assert!(message.contains("another host key") && message.contains("SHA256:"), "{message}");
    assert!(
        !server.log().contains(USER),
        "the name was sent to a server that is not the one: {}",
        server.log()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_or_foreign_folder_is_reported() {
    let small = Small::new("size=64k");
    let server = Server::with("", Some(small.path()));
    let testbed = Testbed::new().await;
    every::fails(&testbed, &server.target(), &server.home).await;
    assert_eq!(every::names(&server.home), Vec::<String>::new());
    chown(&server.home, Some(0), Some(0)).expect("an owner");
    fs::set_permissions(&server.home, Permissions::from_mode(0o755)).expect("a mode");
    let message = every::fails(&testbed, &server.target(), &server.home).await;
    assert!(message.contains("may not do this"), "{message}");
    let mut target = server.target();
    target["path"] = json!("/no/such/folder");
    let message = every::fails(&testbed, &target, &server.home).await;
    assert!(message.contains("does not exist"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_breaks_leaves_no_backup() {
    let server = Server::start();
    every::breaks(&server.target(), |at| server.target_at(at), server.address, &server.home).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_left() {
    let server = Server::start();
    every::hangs(|at| server.target_at(at)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_reported() {
    let server = Server::start();
    let mut wrong = server.target();
    wrong["secret"] = json!("not-the-password");
    every::tells_no_secret(&server.target(), &wrong, &[PASSWORD, "not-the-password"]).await;
    let mut target = server.target();
    let key = server.private_key();
    target["private_key"] = json!(key);
    // An omitted field would be kept, and a key takes precedence over a password.
    wrong["private_key"] = Value::Null;
    let body: Vec<&str> = key.lines().filter(|line| !line.starts_with("---")).collect();
    every::tells_no_secret(&target, &wrong, &body[1..2]).await;
}

/// This sshd and the gateway have no hybrid key exchange in common.
#[tokio::test(flavor = "multi_thread")]
async fn required_post_quantum_refuses_a_server_without_it() {
    let server = Server::with("KexAlgorithms curve25519-sha256", None);
    let testbed = Testbed::new().await;
    let mode = testbed.send("PUT", "/pq-crypto", Some(&json!({"mode": "required"}))).await;
    assert_eq!(mode.status, 200, "{}", mode.body);
    let message = every::fails(&testbed, &server.target(), &server.home).await;
    assert!(message.contains("post-quantum mode is `required`"), "{message}");
}
