//! Control socket of hostapd: one datagram for a command, and one for its reply.

use std::io;
use std::os::fd::AsRawFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram as StdDatagram};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::net::UnixDatagram;

const TIMEOUT: Duration = Duration::from_secs(3);
/// Longest reply of hostapd.
const MAX_REPLY: usize = 8192;

/// Client of the control socket of one interface.
#[derive(Debug)]
pub struct HostapdControl(UnixDatagram);

impl HostapdControl {
    /// Connects to the socket of an interface in the folder of the process.
    pub fn connect(folder: &Path, interface: &str) -> io::Result<HostapdControl> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // An abstract address needs no file, and a connected socket takes datagrams of hostapd alone.
        let name = format!(
            "gatewayd-access-point-{}-{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let socket = StdDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
        // The path of a socket has 108 bytes at most, and that of the folder may be longer.
        let opened = std::fs::File::open(folder)?;
        socket.connect(format!("/proc/self/fd/{}/{interface}", opened.as_raw_fd()))?;
        socket.set_nonblocking(true)?;
        Ok(HostapdControl(UnixDatagram::from_std(socket)?))
    }

    /// Sends a command and returns the reply.
    pub async fn request(&self, command: &str) -> io::Result<String> {
        let exchange = async {
            self.0.send(command.as_bytes()).await?;
            let mut reply = vec![0; MAX_REPLY];
            let length = self.0.recv(&mut reply).await?;
            reply.truncate(length);
            Ok(String::from_utf8_lossy(&reply).into_owned())
        };
        tokio::time::timeout(TIMEOUT, exchange).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn command_has_its_reply_also_below_a_long_path() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("x".repeat(120));
        std::fs::create_dir(&long).unwrap();
        let opened = std::fs::File::open(&long).unwrap();
        let path = format!("/proc/self/fd/{}/wlan0", opened.as_raw_fd());
        let server = StdDatagram::bind(path).unwrap();
        let control = HostapdControl::connect(&long, "wlan0").unwrap();
        let serving = std::thread::spawn(move || {
            let mut command = [0; 64];
            let (length, from) = server.recv_from(&mut command).unwrap();
            assert_eq!(&command[..length], b"STATUS");
            server.send_to_addr(b"state=ENABLED\n", &from).unwrap();
        });
        assert_eq!(control.request("STATUS").await.unwrap(), "state=ENABLED\n");
        serving.join().unwrap();
        assert!(HostapdControl::connect(&long, "wlan1").is_err());
    }
}
