//! Kinds and states of anomalies.

use crate::validated::text_enum;

text_enum! {
    /// Kind of an anomaly in the traffic of a device.
    pub enum AnomalyKind {
        /// It sends far more than usual at this hour.
        AbnormalUpload = "abnormal_upload",
        /// It has sent more within an hour than `anomalies.large_upload_mib`.
        LargeUpload = "large_upload",
        /// First connection to a country.
        NewDestinationCountry = "new_destination_country",
        /// First connection to a port.
        NewPort = "new_port",
        /// Far more DNS queries than usual at this hour.
        DnsVolume = "dns_volume",
        /// Far more queries for names that do not exist than usual at this hour.
        DnsNxdomainBurst = "dns_nxdomain_burst",
        /// Queries for names that look generated and do not exist.
        DgaLike = "dga_like",
        /// Queries for very many long names below one domain.
        DnsTunnelLike = "dns_tunnel_like",
        /// Connections to one destination at regular intervals.
        Beaconing = "beaconing",
        /// Connections to very many ports or addresses.
        PortScan = "port_scan",
        /// Traffic at night, at an hour at which it is usually quiet.
        NightActivity = "night_activity",
        /// Its MAC address is online at two interfaces.
        MacSpoof = "mac_spoof",
        /// Use of a public resolver by DNS over HTTPS.
        DohUsage = "doh_usage",
        /// Use of Tor, or of a VPN of its own.
        TorOrVpnUsage = "tor_or_vpn_usage",
    }
}

text_enum! {
    /// State of an anomaly.
    pub enum AnomalyStatus {
        /// It was seen within the last hour.
        Open = "open",
        Closed = "closed",
    }
}
