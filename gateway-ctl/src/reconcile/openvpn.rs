//! OpenVPN processes as a backend.
//!
//! The processes keep themselves running, so the backend compares the last requested configuration with the plan.
//! Putting and removing return at once: a process that ends slowly delays nothing else.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use gateway_core::plan::OpenVpnProcess;

use crate::os::Backend;
use crate::os::backend::ABSENT;
use crate::os::openvpn::OpenVpn;

#[derive(Debug)]
pub struct Processes(Arc<OpenVpn>);

impl Processes {
    pub fn new(openvpn: Arc<OpenVpn>) -> Self {
        Self(openvpn)
    }
}

impl Backend for Processes {
    type Key = String;
    type Value = OpenVpnProcess;
    type Error = Infallible;

    const NAME: &'static str = "openvpn";
    const REMOVE_FIRST: bool = false;

    async fn read(&self) -> Result<BTreeMap<String, OpenVpnProcess>, Infallible> {
        Ok(self.0.list().into_iter().map(|(id, process)| (id, process.as_ref().clone())).collect())
    }

    async fn put(
        &self,
        key: &String,
        want: &OpenVpnProcess,
        _have: Option<&OpenVpnProcess>,
    ) -> Result<(), Infallible> {
        self.0.apply(key, want.clone());
        Ok(())
    }

    async fn remove(&self, key: &String, _have: &OpenVpnProcess) -> Result<(), Infallible> {
        self.0.remove(key);
        Ok(())
    }

    fn resource(key: &String) -> String {
        format!("tunnel {key}")
    }

    fn differences(
        expected: Option<&OpenVpnProcess>,
        actual: Option<&OpenVpnProcess>,
    ) -> Vec<(&'static str, String, String)> {
        // The output excludes the content, which includes keys.
        let show = |value: Option<&OpenVpnProcess>| {
            value.map_or_else(|| ABSENT.to_owned(), |process| format!("on {}", process.interface))
        };
        vec![("process", show(expected), show(actual))]
    }
}
