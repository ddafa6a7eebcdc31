//! Packets that enter by a LAN interface as if a host had sent them: for leak checks.

use std::io;

use aya::programs::{TestRun as _, TestRunOptions};
use gateway_common::verdict::Reason;
use gateway_common::wire::FlowKey;

use super::programs::INJECT;
use super::{Error, Programs};

/// `struct __sk_buff` (include/uapi/linux/bpf.h): its length, and the offset of the interface.
const CONTEXT: usize = 192;
const IFINDEX: usize = 40;

impl Programs {
    /// Lets a frame enter by an interface of this network namespace. It passes all programs there, and leaves like
    /// one that a host sent.
    pub fn inject(&mut self, interface: u32, frame: &[u8]) -> Result<(), Error> {
        let mut context = [0u8; CONTEXT];
        context[IFINDEX..IFINDEX + 4].copy_from_slice(&interface.to_ne_bytes());
        let options =
            TestRunOptions { data_in: Some(frame), ctx_in: Some(&context), ..TestRunOptions::default() };
        let failed = |source| Error::Inject { interface, source };
        let result = self.program(INJECT)?.test_run(options);
        let result = result.map_err(|error| failed(io::Error::other(error)))?;
        match result.return_value.cast_signed() {
            0 => Ok(()),
            error => Err(failed(io::Error::from_raw_os_error(-error))),
        }
    }

    /// Returns the reason of the recorded verdict on a flow.
    pub fn reason_of_flow(&self, key: &FlowKey) -> Result<Option<Reason>, Error> {
        Ok(self.flow(key)?.and_then(|flow| Reason::from_wire(flow.reason)))
    }
}
