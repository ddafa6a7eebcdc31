//! Packets of cover traffic, and their machines.

use std::net::Ipv4Addr;

use boringtun::noise::Tunn;
use gateway_model::settings::groups::CoverMachine;

use super::*;

#[test]
fn a_cover_packet_is_well_formed_except_for_its_impossible_source() {
    for len in [32, 64, 1420, 65_535] {
        let mut packet = vec![0xff; len];
        fill_cover_packet(&mut packet);
        assert_eq!((packet[0] >> 4, packet[0] & 0x0f), (4, 0), "version and header length");
        assert_eq!(usize::from(u16::from_be_bytes([packet[2], packet[3]])), len);
        assert_eq!(packet[12..16], Ipv4Addr::UNSPECIFIED.octets());
        assert!(packet[4..].iter().all(|byte| *byte == 0));
        assert_eq!(Tunn::dst_address(&packet), Some(Ipv4Addr::UNSPECIFIED.into()));
    }
    for len in 0..4 {
        fill_cover_packet(&mut vec![0xff; len]);
    }
}

#[test]
fn every_machine_is_valid_and_holds_nothing_back() {
    for name in CoverMachine::ALL {
        let settings = CoverSettings { machines: vec![*name], ..CoverSettings::default() };
        assert!(PeerCover::new(&settings, Instant::now(), Counts::default()).is_ok(), "{name}");
    }
}
