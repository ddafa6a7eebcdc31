//! Identity of a client: its identifier, else its MAC address (RFC 2131, section 4.2).

use gateway_model::MacAddr;

/// Hardware type of Ethernet (RFC 1700).
pub(super) const ETHERNET: u8 = 1;

/// Key by which a client has leases. An identifier that consists of the hardware type and the MAC address is the same
/// client as one without an identifier: boot loaders and systems of one machine differ in that.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientKey(Box<[u8]>);

impl ClientKey {
    pub fn of_mac(mac: MacAddr) -> ClientKey {
        let [a, b, c, d, e, f] = mac.octets();
        ClientKey(Box::new([ETHERNET, a, b, c, d, e, f]))
    }

    pub fn new(mac: MacAddr, identifier: Option<&[u8]>) -> ClientKey {
        // An identifier has at least a type and one byte (RFC 2132, section 9.14).
        match identifier.filter(|identifier| identifier.len() >= 2) {
            Some(identifier) => ClientKey(identifier.into()),
            None => ClientKey::of_mac(mac),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifier_of_the_mac_address_is_the_same_client() {
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        assert_eq!(ClientKey::new(mac, None), ClientKey::new(mac, Some(&[1, 2, 0, 0, 0, 0, 1])));
        assert_eq!(ClientKey::new(mac, Some(&[7])), ClientKey::of_mac(mac));
        assert_ne!(ClientKey::new(mac, Some(b"\0tv")), ClientKey::of_mac(mac));
    }
}
