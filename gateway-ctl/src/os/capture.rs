//! Packet captures: a child process of the same program reads the packets of interfaces from rings of the kernel, and
//! hands them to the daemon with their summaries.
//!
//! The child opens its sockets, gives up all rights, and only then reads bytes of others. Its death ends its capture and
//! nothing else. Decision 0154 says why.

pub mod child;
mod libpcap;
mod record;
mod ring;
mod sandbox;
mod spawn;

pub use record::{
    CaptureFailure, CaptureOrder, CapturedFrame, ChildEnd, Direction, InterfaceCounters, OrderedInterface,
    PacketFlow, Record, RecordReader,
};
pub use spawn::{CaptureProcess, SpawnError};
