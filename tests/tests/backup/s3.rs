//! An object store in this process that checks signatures and stores its objects in a folder.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::backup::every::{self, backups};
use crate::backup::folder::Small;
use crate::backup::relay::Relay;
use crate::backup::testbed::Testbed;

const KEY: &str = "GWBACKUPKEY";
const SECRET: &str = "s3cret-of-the-object-store";

struct Server {
    address: SocketAddr,
    /// Folder of the objects with the prefix.
    files: PathBuf,
    /// Temporary folder, unless the caller owns it.
    folder: Option<tempfile::TempDir>,
    task: JoinHandle<()>,
}

impl Server {
    async fn start() -> Server {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().to_owned();
        let mut server = Self::over(root).await;
        server.folder = Some(folder);
        server
    }

    async fn over(root: PathBuf) -> Server {
        let files = root.join("bucket/gateways/home");
        fs::create_dir_all(&files).expect("a bucket");
        let mut service = S3ServiceBuilder::new(FileSystem::new(&root).expect("a store"));
        service.set_auth(SimpleAuth::from_single(KEY, SECRET));
        let service = service.build();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = service.clone();
                tokio::spawn(async move {
                    let server = Builder::new(TokioExecutor::new());
                    // A client that disconnects early is no error of the server.
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Server { address, files, folder: None, task }
    }

    fn target(&self) -> Value {
        target_at(self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
        drop(self.folder.take());
    }
}

fn target_at(address: SocketAddr) -> Value {
    json!({"type": "s3", "url": format!("http://{address}"), "username": KEY, "secret": SECRET,
        "path": "bucket/gateways/home"})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_comes_and_the_oldest_go() {
    let server = Server::start().await;
    every::comes_and_goes(&server.target(), &server.files).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_or_bucket_is_refused() {
    let server = Server::start().await;
    let testbed = Testbed::new().await;
    let mut target = server.target();
    target["secret"] = json!("not-the-secret");
    let message = every::fails(&testbed, &target, &server.files).await;
    assert!(message.contains("refuses the user or the secret (403"), "{message}");
    let mut target = server.target();
    target["path"] = json!("no-bucket/home");
    let message = every::fails(&testbed, &target, &server.files).await;
    assert!(message.contains("NoSuchBucket"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_store_is_reported() {
    let small = Small::new("size=64k");
    let server = Server::over(small.path().to_owned()).await;
    let testbed = Testbed::new().await;
    every::fails(&testbed, &server.target(), &server.files).await;
    assert_eq!(backups(&server.files), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_breaks_leaves_no_backup() {
    let server = Server::start().await;
    every::breaks(&server.target(), target_at, server.address, &server.files).await;
}

/// Only a file that was read back and decrypted counts as a backup.
#[tokio::test(flavor = "multi_thread")]
async fn an_altered_backup_is_refused() {
    let server = Server::start().await;
    let testbed = Testbed::new().await;
    // Only the response with the file itself is this long.
    let relay = Relay::altering(server.address, 150_000).await;
    testbed.configure(&target_at(relay.address), json!({})).await;
    let message = testbed.run().await.error(502, "upstream_failed");
    assert!(message.contains("is not what was written"), "{message}");
    assert_eq!(backups(&server.files), Vec::<String>::new());
    testbed.configure(&server.target(), json!({})).await;
    let made = testbed.backup().await;
    assert_eq!(backups(&server.files), [made]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_left() {
    every::hangs(target_at).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_reported() {
    let server = Server::start().await;
    let mut wrong = server.target();
    wrong["secret"] = json!("not-the-secret");
    every::tells_no_secret(&server.target(), &wrong, &[SECRET, "not-the-secret"]).await;
}
