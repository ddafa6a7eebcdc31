//! Values of the configuration that are one of some words.

use crate::validated::text_enum;

text_enum! {
    #[derive(Default)]
    pub enum LogLevel {
        Debug = "debug",
        #[default]
        Info = "info",
        Warn = "warn",
        Error = "error",
    }
}

text_enum! {
    /// Role of the gateway in the network.
    #[derive(Default)]
    pub enum NetworkMode {
        #[default]
        Primary = "primary",
        Embedded = "embedded",
        Portable = "portable",
    }
}

text_enum! {
    /// Treatment of hosts on the LAN that are no device.
    #[derive(Default)]
    pub enum UnknownHosts {
        /// Policies for interfaces, networks and all traffic decide; without one, the default route.
        #[default]
        Direct = "direct",
        /// They do not reach the internet, whatever policies there are.
        Blocked = "blocked",
        /// Neither the internet nor other networks of the LAN, as for the trust class `quarantine`.
        Quarantine = "quarantine",
    }
}

text_enum! {
    #[derive(Default)]
    pub enum FailoverMode {
        Manual = "manual",
        #[default]
        Auto = "auto",
    }
}
