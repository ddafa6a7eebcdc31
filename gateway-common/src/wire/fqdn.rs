//! DNS-learned addresses of clients, for policies that match domains.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Address, Mac};

/// Client of a DNS query: a device by its index, another host by its MAC address or, without one, by its IP address.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct ClientKey {
    high: u32,
    low: u32,
}

const BY_MAC: u32 = 1 << 31;
const BY_ADDRESS: u32 = 1 << 30;

impl ClientKey {
    /// `device` is 0 for an unknown host.
    #[inline(always)]
    pub const fn new(device: u32, mac: Mac, address: &Address) -> ClientKey {
        if device != 0 {
            return ClientKey { high: 0, low: device };
        }
        let [first, second, third] = mac.0;
        if first | second | third != 0 {
            return ClientKey { high: BY_MAC | first as u32, low: (second as u32) << 16 | third as u32 };
        }
        let [a, b, c, d] = address.0;
        ClientKey { high: BY_ADDRESS | (a ^ b) >> 2, low: c ^ d }
    }

    /// Number of the device, 0 for an unknown host.
    pub const fn device(self) -> u32 {
        if self.high == 0 { self.low } else { 0 }
    }

    pub const fn from_number(number: u64) -> ClientKey {
        ClientKey { high: (number >> 32) as u32, low: number as u32 }
    }

    /// Returns the key as one number.
    pub const fn number(self) -> u64 {
        (self.high as u64) << 32 | self.low as u64
    }
}

/// Key of a DNS-learned address: slot, client and address.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct FqdnIpKey {
    pub slot: u32,
    pub client: ClientKey,
    pub address: Address,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FqdnIpValue {
    /// Rank of the first policy that matches a name through which the client resolved the address.
    pub rank: u32,
    /// Last tick (see [`super::FLOW_TICK_SHIFT`]) of the entry. Established flows stay.
    pub until: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_cards_and_addresses_are_never_taken_for_one_another() {
        let none = Mac::new([0; 6]);
        let address = Address::v4([192, 0, 2, 1]);
        let device = ClientKey::new(7, Mac::new([2, 0, 0, 0, 0, 7]), &address);
        let card = ClientKey::new(0, Mac::new([0, 0, 0, 0, 0, 7]), &address);
        let host = ClientKey::new(0, none, &address);
        assert!(device != card && card != host && device != host);
        assert_eq!(device, ClientKey::new(7, none, &Address::v4([192, 0, 2, 2])));
        assert_eq!(card, ClientKey::new(0, Mac::new([0, 0, 0, 0, 0, 7]), &Address::v4([192, 0, 2, 2])));
        assert_ne!(host, ClientKey::new(0, none, &Address::v4([192, 0, 2, 2])));
    }
}
