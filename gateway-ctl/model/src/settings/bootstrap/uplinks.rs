//! Uplinks of the configuration, and the phone that the settings of Bluetooth add.

use std::borrow::Cow;

use super::Bootstrap;
use crate::id::IfName;
use crate::settings::uplink::Wan;

impl Bootstrap {
    /// All uplinks, disabled ones and the phone included. Of two with one interface the first counts.
    pub fn all_uplinks(&self) -> Cow<'_, [Wan]> {
        let mut all = self.listed_uplinks();
        if let Some(phone) = &self.network.bluetooth {
            all.to_mut().push(phone.clone());
        }
        all
    }

    /// The uplinks that are probed and selected from. A single one that is not configured as such needs neither.
    pub fn selected_uplinks(&self) -> Cow<'_, [Wan]> {
        match self.network.bluetooth {
            Some(_) => self.all_uplinks(),
            None => Cow::Borrowed(&self.network.wans),
        }
    }

    /// The uplinks of the configuration, disabled ones included: `wans`, else one on `wan_iface`.
    pub fn listed_uplinks(&self) -> Cow<'_, [Wan]> {
        if self.network.wans.is_empty() {
            return Cow::Owned(vec![Wan::of_interface(self.network.wan_iface.clone())]);
        }
        Cow::Borrowed(&self.network.wans)
    }

    /// Interfaces to the internet: those of the enabled uplinks.
    pub fn uplinks(&self) -> Vec<IfName> {
        self.all_uplinks().iter().filter(|wan| wan.enabled).map(|wan| wan.interface.clone()).collect()
    }
}
