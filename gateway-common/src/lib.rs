//! Interface between the kernel programs and the daemon: map layouts, packet views, and the one
//! decision function. No I/O, no allocation, no unsafe code.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod abi;
pub mod admission;
pub mod blocks;
pub mod checksum;
pub mod classify;
pub mod client_hello;
pub mod decide;
pub mod dns_filter;
pub mod fast_path;
pub mod guard;
pub mod inspect;
pub mod leg_selection;
pub mod link_protocol;
pub mod maps;
pub mod packet;
pub mod policy_maps;
pub mod reason;
pub mod recorded_verdict;
pub mod tagged_frame;
pub mod verdict;
pub mod wire;
