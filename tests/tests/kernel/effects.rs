//! The backends, the observer and the reconcile run against the kernel, checked with `ip` and `nft` like an
//! administrator does.

mod backends;
mod base_block;
mod nft;
mod observe;
mod reconcile;

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use gateway_ctl::os::Netlink;
use gateway_tests::netns::{Namespace, Prefix};
use gateway_tests::wait::wait_until;

/// Duration without a packet after which a test assumes that none comes.
const SILENCE: Duration = Duration::from_millis(300);

fn namespace(label: &str) -> Namespace {
    let prefix = Prefix::unique().expect("root");
    Namespace::create(&prefix, label).expect("namespace")
}

/// Runs in the namespace on its own runtime.
fn within<T: Send>(namespace: &Namespace, work: impl AsyncFnOnce() -> T + Send) -> T {
    namespace.within(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
        runtime.block_on(work())
    })
}

fn netlink() -> Netlink {
    Netlink::open().expect("netlink")
}

/// Returns a receiver of datagrams. Another test that is starting a program may briefly hold a duplicate of the socket
/// that was bound here before, until the exec.
fn receiver(namespace: &Namespace, address: SocketAddr) -> UdpSocket {
    let bind = || namespace.within(|| UdpSocket::bind(address)).ok();
    let socket = wait_until(Duration::from_secs(10), "a free port", bind).expect("receiver");
    socket.set_read_timeout(Some(SILENCE)).expect("timeout");
    socket
}

fn ip(namespace: &Namespace, arguments: &str) -> String {
    let arguments: Vec<&str> = arguments.split(' ').collect();
    namespace.run("ip", &arguments).expect("ip")
}
