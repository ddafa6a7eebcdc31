//! DNS messages (RFC 1035) that query an address, and their replies. Pure.

use std::net::IpAddr;

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};

/// Query for one name and type.
#[derive(Clone, Debug)]
pub struct DnsQuery {
    id: u16,
    query: Query,
}

impl DnsQuery {
    /// Returns none for text that is no domain name.
    pub fn new(id: u16, name: &str, rtype: RecordType) -> Option<DnsQuery> {
        let mut name = Name::from_ascii(name).ok()?;
        name.set_fqdn(true);
        Some(DnsQuery { id, query: Query::query(name, rtype) })
    }

    /// Returns a query for the name servers of the root.
    pub fn root_name_servers(id: u16) -> DnsQuery {
        DnsQuery { id, query: Query::query(Name::root(), RecordType::NS) }
    }

    /// Returns the message, with recursion desired.
    pub fn message(&self) -> Option<Vec<u8>> {
        let mut message = Message::new(self.id, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        message.add_query(self.query.clone());
        message.to_vec().ok()
    }

    /// Returns whether the message is a reply with the id of the query, regardless of its content.
    pub fn is_reply(&self, message: &[u8]) -> bool {
        const HEADER: usize = 12;
        message.len() >= HEADER && message[..2] == self.id.to_be_bytes() && message[2] & 0x80 != 0
    }

    /// Returns the addresses in a reply; none if it belongs to another query or refuses this one.
    pub fn addresses(&self, message: &[u8]) -> Option<Vec<IpAddr>> {
        if !self.is_reply(message) {
            return None;
        }
        let reply = Message::from_vec(message).ok()?;
        if reply.metadata.response_code != ResponseCode::NoError || reply.queries != [self.query.clone()] {
            return None;
        }
        // The reply contains the target of a CNAME too.
        let found = reply.answers.iter().filter_map(|record| match (&record.data, self.query.query_type()) {
            (RData::A(address), RecordType::A) => Some(IpAddr::from(address.0)),
            (RData::AAAA(address), RecordType::AAAA) => Some(IpAddr::from(address.0)),
            _ => None,
        });
        Some(found.collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: u16 = 1;

    fn reply(query: &DnsQuery, code: u8, records: &[(u16, &[u8])]) -> Vec<u8> {
        let mut message = query.message().unwrap();
        message[2] |= 0x80;
        message[3] = code;
        message[7] = records.len() as u8;
        for (rtype, data) in records {
            message.extend([0xc0, 12]);
            message.extend(rtype.to_be_bytes());
            message.extend([0, 1, 0, 0, 0, 60]);
            message.extend((data.len() as u16).to_be_bytes());
            message.extend(*data);
        }
        message
    }

    #[test]
    fn reply_gives_the_addresses_behind_its_aliases() {
        let query = |id, name: &str, rtype| DnsQuery::new(id, name, rtype).unwrap();
        let asked = query(0x1234, "vpn.example", RecordType::A);
        assert_eq!(&asked.message().unwrap()[12..], b"\x03vpn\x07example\x00\x00\x01\x00\x01");
        let alias = b"\x01x\xc0\x10";
        let good = reply(&asked, 0, &[(5, alias), (A, &[192, 0, 2, 1]), (A, &[192, 0, 2, 2])]);
        assert_eq!(asked.addresses(&good), Some(vec![[192, 0, 2, 1].into(), [192, 0, 2, 2].into()]));
        assert_eq!(asked.addresses(&reply(&asked, 0, &[])), Some(vec![]));
        assert_eq!(asked.addresses(&reply(&asked, 3, &[])), None, "there is no such name");
        assert_eq!(query(0x1235, "vpn.example", RecordType::A).addresses(&good), None, "another id");
        assert_eq!(query(0x1234, "vpn.example.net", RecordType::A).addresses(&good), None, "another name");
        assert_eq!(query(0x1234, "vpn.example", RecordType::AAAA).addresses(&good), None, "another type");
        assert_eq!(asked.addresses(&asked.message().unwrap()), None, "a query is no reply");
        let six = query(0x1234, "vpn.example", RecordType::AAAA);
        assert_eq!(six.addresses(&reply(&six, 0, &[(28, &[0x20; 16])])), Some(vec![[0x20; 16].into()]));
    }

    #[test]
    fn text_that_is_no_name_gives_no_query() {
        assert!(DnsQuery::new(1, &"a".repeat(64), RecordType::A).is_none());
        assert!(DnsQuery::root_name_servers(1).message().is_some());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0usize..80, place in 0usize..80, byte in any::<u8>(),
        ) {
            let query = DnsQuery::new(0x0102, "vpn.example", RecordType::A).unwrap();
            query.addresses(&bytes);
            let mut good = reply(&query, 0, &[(5, b"\x01x\xc0\x10"), (A, &[192, 0, 2, 1])]);
            let at = place.min(good.len() - 1);
            good[at] = byte;
            good.truncate(cut.max(1));
            query.addresses(&good);
        }
    }
}
