//! Connection tracking of a namespace: its size, and its flush (`ctnetlink`, uapi/linux/netfilter/nfnetlink.h).

use anyhow::{Context, Result, ensure};
use gateway_tests::netns::Namespace;
use socket2::{Domain, Protocol, Socket, Type};

/// `NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE`: without a tuple it deletes all entries.
const DELETE: u16 = 1 << 8 | 2;
const REQUEST_WITH_ACKNOWLEDGEMENT: u16 = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
/// Length of the header (`struct nlmsghdr`) and of the family behind it (`struct nfgenmsg`).
const LENGTH: u32 = 16 + 4;

/// Fails if the table of conntrack is too small for a bench.
pub(crate) fn require_entries(namespace: &Namespace, entries: u32) -> Result<()> {
    let file = "/proc/sys/net/netfilter/nf_conntrack_max";
    let text = namespace.within(|| std::fs::read_to_string(file)).context(file)?;
    let max: u32 = text.trim().parse().context(file)?;
    ensure!(max >= entries, "set net.netfilter.nf_conntrack_max to at least {entries}: it is {max}");
    Ok(())
}

/// Deletes all entries of a namespace.
pub(crate) fn flush(namespace: &Namespace) -> Result<()> {
    let netfilter = Protocol::from(libc::NETLINK_NETFILTER);
    let socket = namespace
        .within(|| Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, Some(netfilter)))
        .context("a socket")?;
    let mut message = Vec::new();
    message.extend(LENGTH.to_ne_bytes());
    message.extend(DELETE.to_ne_bytes());
    message.extend(REQUEST_WITH_ACKNOWLEDGEMENT.to_ne_bytes());
    // Sequence, port; family, version and resource.
    message.extend([0; 12]);
    socket.send(&message).context("flush conntrack")?;
    let mut answer = [std::mem::MaybeUninit::uninit(); 128];
    let length = socket.recv(&mut answer).context("the answer of conntrack")?;
    ensure!(length >= 20, "the answer of conntrack has {length} bytes");
    // SAFETY: the kernel has written this many bytes.
    let error: Vec<u8> = answer[16..20].iter().map(|byte| unsafe { byte.assume_init() }).collect();
    ensure!(error == [0; 4], "conntrack refuses the flush: {error:?}");
    Ok(())
}
