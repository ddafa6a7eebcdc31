//! Filters of a clsact qdisc, read from the kernel over netlink. aya has no query for them.

use std::io;
use std::num::NonZeroI32;
use std::os::fd::OwnedFd;

use aya::programs::TcAttachType;
use netlink_packet_core::{
    DecodeError, DoneBuffer, ErrorBuffer, NLM_F_DUMP, NLM_F_REQUEST, NLMSG_ALIGNTO, NLMSG_DONE, NLMSG_ERROR,
    NetlinkBuffer, NetlinkMessage, Parseable as _,
};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::tc::{TcAttribute, TcFilterBpfOption, TcHandle, TcHeader, TcMessage, TcOption};
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with};

use crate::os::driver_state::has_ingress_only;

/// Longest netlink datagram of the kernel.
const MAX_DATAGRAM_LENGTH: usize = 32 * 1024;

/// A filter. The kernel also reports each preference as a filter without a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    pub preference: u16,
    pub program: Option<BpfProgram>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BpfProgram {
    pub name: String,
    pub id: u32,
}

/// Returns the filters of one direction of an interface in the network namespace of this thread. The list is empty if
/// there is no qdisc for them, and that of ingress if [`is_impossible`]. The socket blocks, so callers need no runtime.
pub(super) fn list(interface: u32, kind: TcAttachType) -> io::Result<Vec<Filter>> {
    let socket: OwnedFd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    net::send(&socket, &request(interface, kind), SendFlags::empty())?;
    let mut filters = Vec::new();
    let mut buffer = vec![0; MAX_DATAGRAM_LENGTH];
    loop {
        let (length, _) = net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        if read(&buffer[..length], &mut filters)? {
            return Ok(filters);
        }
    }
}

/// Reports whether the interface has no place for filters of this direction. A qdisc `ingress` has filters at ingress only,
/// but it takes those for egress, too, and puts them there.
pub(super) fn is_impossible(interface: u32, kind: TcAttachType) -> io::Result<bool> {
    Ok(matches!(kind, TcAttachType::Egress) && has_ingress_only(interface)?)
}

fn request(interface: u32, kind: TcAttachType) -> Vec<u8> {
    let minor = match kind {
        TcAttachType::Ingress => TcHandle::MIN_INGRESS,
        _ => TcHandle::MIN_EGRESS,
    };
    let mut filter = TcMessage::with_index(interface.cast_signed());
    filter.header.parent = TcHandle { minor, ..TcHandle::CLSACT };
    let mut message = NetlinkMessage::from(RouteNetlinkMessage::GetTrafficFilter(filter));
    message.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    message.finalize();
    let mut request = vec![0; message.buffer_len()];
    message.serialize(&mut request);
    request
}

/// Adds the filters of a datagram. Returns whether it ends the dump.
fn read(mut datagram: &[u8], filters: &mut Vec<Filter>) -> io::Result<bool> {
    while !datagram.is_empty() {
        let message = NetlinkBuffer::new_checked(datagram).map_err(io::Error::other)?;
        match message.message_type() {
            NLMSG_DONE => {
                let done = DoneBuffer::new_checked(message.payload()).map_err(io::Error::other)?;
                return if done.code() < 0 { Err(kernel_error(done.code())) } else { Ok(true) };
            }
            NLMSG_ERROR => {
                let error = ErrorBuffer::new_checked(message.payload()).map_err(io::Error::other)?;
                return Err(kernel_error(error.code().map_or(0, NonZeroI32::get)));
            }
            libc::RTM_NEWTFILTER => filters.push(filter(message.payload()).map_err(io::Error::other)?),
            _ => {}
        }
        let length = (message.length() as usize).next_multiple_of(usize::from(NLMSG_ALIGNTO));
        datagram = datagram.get(length..).unwrap_or_default();
    }
    Ok(false)
}

fn kernel_error(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code.saturating_neg())
}

fn filter(payload: &[u8]) -> Result<Filter, DecodeError> {
    let preference = (TcHeader::parse(payload)?.info >> 16) as u16;
    // The library refuses some options of foreign filters. Their preference counts all the same.
    let program = TcMessage::parse(payload).ok().and_then(|message| program(&message));
    Ok(Filter { preference, program })
}

fn program(filter: &TcMessage) -> Option<BpfProgram> {
    let options = filter.attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Options(options) => Some(options),
        _ => None,
    })?;
    let name = options.iter().find_map(|option| match option {
        TcOption::Bpf(TcFilterBpfOption::ProgName(name)) => Some(name.clone()),
        _ => None,
    })?;
    let id = options.iter().find_map(|option| match option {
        TcOption::Bpf(TcFilterBpfOption::ProgId(id)) => Some(*id),
        _ => None,
    })?;
    Some(BpfProgram { name, id })
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::{
        DefaultNla, DoneMessage, Emitable as _, ErrorMessage, NetlinkHeader, NetlinkPayload,
    };

    use super::*;

    fn datagram(payloads: Vec<NetlinkPayload<RouteNetlinkMessage>>) -> Vec<u8> {
        let mut datagram = Vec::new();
        for payload in payloads {
            let mut message = NetlinkMessage::new(NetlinkHeader::default(), payload);
            message.finalize();
            let mut bytes = vec![0; message.buffer_len().next_multiple_of(4)];
            message.serialize(&mut bytes);
            datagram.extend(bytes);
        }
        datagram
    }

    fn message(preference: u32, kind: &str, options: Vec<TcOption>) -> TcMessage {
        let mut message = TcMessage::with_index(7);
        message.header.info = preference << 16 | 0x0300;
        message.attributes =
            vec![TcAttribute::Kind(kind.to_owned()), TcAttribute::Chain(0), TcAttribute::Options(options)];
        message
    }

    fn new_filter(message: TcMessage) -> NetlinkPayload<RouteNetlinkMessage> {
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewTrafficFilter(message))
    }

    fn done(code: i32) -> NetlinkPayload<RouteNetlinkMessage> {
        let mut done = DoneMessage::default();
        done.code = code;
        NetlinkPayload::Done(done)
    }

    #[test]
    fn filters_are_read_with_their_preferences_and_programs() {
        // A four-byte option that the library refuses.
        let refused = message(9, "u32", vec![TcOption::Other(DefaultNla::new(1, vec![1]))]);
        let mut bytes = vec![0; refused.buffer_len()];
        refused.emit(&mut bytes);
        assert!(TcMessage::parse(&bytes).is_err(), "the library refuses it");

        let guard = vec![
            TcOption::Bpf(TcFilterBpfOption::ProgName("gw_guard".to_owned())),
            TcOption::Bpf(TcFilterBpfOption::ProgId(42)),
        ];
        let (first, last) = (new_filter(refused), new_filter(message(71, "bpf", guard)));
        let mut filters = Vec::new();
        let whole_dump =
            read(&datagram(vec![first, new_filter(message(71, "bpf", Vec::new()))]), &mut filters);
        assert!(!whole_dump.expect("a datagram"), "more datagrams follow");
        assert!(read(&datagram(vec![last, done(0)]), &mut filters).expect("a datagram"), "the end");
        let program = BpfProgram { name: "gw_guard".to_owned(), id: 42 };
        assert_eq!(
            filters,
            [
                Filter { preference: 9, program: None },
                Filter { preference: 71, program: None },
                Filter { preference: 71, program: Some(program) },
            ]
        );
    }

    #[test]
    fn failed_and_broken_dumps_are_errors() {
        let mut refused = ErrorMessage::default();
        refused.code = NonZeroI32::new(-libc::ENOMEM);
        for payload in [done(-libc::ENOMEM), NetlinkPayload::Error(refused)] {
            let failed = read(&datagram(vec![payload]), &mut Vec::new()).expect_err("an error");
            assert_eq!(failed.raw_os_error(), Some(libc::ENOMEM));
        }
        let whole = datagram(vec![new_filter(message(71, "bpf", Vec::new()))]);
        read(&whole[..whole.len() - 4], &mut Vec::new()).expect_err("a message that is cut off");
    }

    #[test]
    fn interfaces_without_clsact_have_no_filters() {
        // The loopback interface, and one that does not exist.
        for interface in [1, 0x7fff_fff0] {
            for kind in [TcAttachType::Ingress, TcAttachType::Egress] {
                assert_eq!(list(interface, kind).expect("the kernel answers"), []);
            }
        }
    }
}
