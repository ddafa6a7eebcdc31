//! Radio of an access point: bands, channels and modes of security.

use serde::{Deserialize, Serialize};

use crate::problem::{Problems, code};
use crate::validated::text_enum;

text_enum! {
    /// Security of a wireless network.
    #[derive(Default)]
    pub enum WirelessSecurity {
        /// WPA2 with a passphrase (WPA-PSK).
        Wpa2 = "wpa2",
        /// WPA3 (SAE), with protected management frames.
        Wpa3 = "wpa3",
        /// Each station has the better one of those that it knows.
        #[default]
        Both = "wpa2-wpa3",
    }
}

text_enum! {
    /// Band of a radio.
    #[derive(Default)]
    pub enum Band {
        #[default]
        Low = "2.4ghz",
        High = "5ghz",
    }
}

/// Width of a channel in MHz: 20, 40 or 80.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChannelWidth(pub u16);

impl Default for ChannelWidth {
    fn default() -> ChannelWidth {
        ChannelWidth(20)
    }
}

const LOW_CHANNELS: std::ops::RangeInclusive<u8> = 1..=13;
/// First channels of the blocks of four, which are 80 MHz wide.
const HIGH_BLOCKS: [u8; 6] = [36, 52, 100, 116, 132, 149];
/// Channel without a block.
const LAST_CHANNEL: u8 = 165;

impl Band {
    /// Returns the channel of an access point that names none.
    pub const fn default_channel(self) -> u8 {
        match self {
            Band::Low => 6,
            Band::High => 36,
        }
    }

    fn has_channel(self, channel: u8) -> bool {
        match self {
            Band::Low => LOW_CHANNELS.contains(&channel),
            Band::High => block_of(channel).is_some() || channel == LAST_CHANNEL,
        }
    }

    fn channels(self) -> Vec<String> {
        (1..=LAST_CHANNEL)
            .filter(|channel| self.has_channel(*channel))
            .map(|channel| channel.to_string())
            .collect()
    }
}

/// Returns the first channel of the block that has a channel, and its index there.
pub(super) fn block_of(channel: u8) -> Option<(u8, u8)> {
    let block = HIGH_BLOCKS.into_iter().find(|first| (*first..first + 16).contains(&channel))?;
    (channel - block).is_multiple_of(4).then(|| (block, (channel - block) / 4))
}

/// Reports what is wrong with the radio of an access point.
pub(super) fn validate(
    band: Band,
    channel: u8,
    width: ChannelWidth,
    country: Option<&str>,
    problems: &mut Problems,
) {
    match country {
        None => problems.required("network.ap.country"),
        Some(text) if text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_uppercase()) => {}
        Some(_) => {
            let message = "Expected two capital letters, such as DE.";
            problems.add(code::FORMAT, "network.ap.country", message);
        }
    }
    if !band.has_channel(channel) {
        let message = format!("The band of {band} has no channel {channel}.");
        problems.add(code::RANGE, "network.ap.channel", message).allowed = Some(band.channels());
    }
    let is_wide = band == Band::High && channel != LAST_CHANNEL;
    match width.0 {
        20 => {}
        40 | 80 if is_wide => {}
        40 | 80 => {
            let message = "Channels of 2.4 GHz and the channel 165 are 20 MHz wide.";
            problems.add(code::RANGE, "network.ap.width_mhz", message).allowed = Some(vec!["20".to_owned()]);
        }
        _ => {
            let widths = ["20", "40", "80"].map(str::to_owned).to_vec();
            problems.add(code::RANGE, "network.ap.width_mhz", "Must be 20, 40 or 80.").allowed = Some(widths);
        }
    }
}
