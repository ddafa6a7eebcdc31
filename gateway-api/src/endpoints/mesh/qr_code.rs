//! QR codes, as images and as text.

use qrcode::QrCode as Symbol;
use qrcode::render::{svg, unicode};
use qrcode::types::QrError;

/// Smallest width of the image, in pixels.
const MIN_WIDTH: u32 = 240;

/// A QR code.
pub(super) struct QrCode(Symbol);

impl QrCode {
    /// Encodes a text. Fails if it is too long.
    pub(super) fn of(text: &str) -> Result<QrCode, QrError> {
        Symbol::new(text).map(QrCode)
    }

    /// Renders an SVG image in black and white, which scanners read in any theme.
    pub(super) fn svg(&self) -> String {
        let mut image = self.0.render::<svg::Color<'_>>();
        image.min_dimensions(MIN_WIDTH, MIN_WIDTH);
        image.dark_color(svg::Color("#000000")).light_color(svg::Color("#ffffff")).build()
    }

    /// Renders lines of half blocks for terminals with light text on dark ground.
    pub(super) fn text(&self) -> String {
        let mut lines = self.0.render::<unicode::Dense1x2>();
        lines.dark_color(unicode::Dense1x2::Light).light_color(unicode::Dense1x2::Dark).build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_becomes_an_image_and_lines_of_the_same_code() {
        let code = QrCode::of("gwmesh-0123456789ab-ABCDEFGHIJKLMNOPQRSTUVWXYZ012345").unwrap();
        let other = QrCode::of("gwmesh-0123456789ab-ABCDEFGHIJKLMNOPQRSTUVWXYZ012346").unwrap();
        assert!(code.svg().contains("<svg") && code.svg() != other.svg());
        assert_ne!(code.text(), other.text());
        let (lines, width) = (code.text().lines().count(), code.0.width());
        // Two modules in a line, with a quiet zone of four on each side.
        assert_eq!(lines, (width + 8).div_ceil(2));
        assert!(QrCode::of(&"x".repeat(5000)).is_err());
    }
}
