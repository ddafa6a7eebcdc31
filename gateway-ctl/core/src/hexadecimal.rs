//! Bytes as hexadecimal digits.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Returns two digits for each byte, in lower case. The text is written into memory of its length, so no part of it is left
/// behind elsewhere.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    bytes.iter().flat_map(|byte| digits(*byte)).for_each(|digit| text.push(digit));
    text
}

/// Returns two digits for each byte, in lower case and with a colon between bytes: the form of MAC addresses.
pub fn hex_with_colons(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(3 * bytes.len());
    for (index, byte) in bytes.iter().enumerate() {
        if index > 0 {
            text.push(':');
        }
        text.extend(digits(*byte));
    }
    text
}

fn digits(byte: u8) -> [char; 2] {
    [byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn digits_are_those_of_the_formatter(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            prop_assert_eq!(hex(&bytes), digits.concat());
            prop_assert_eq!(hex_with_colons(&bytes), digits.join(":"));
        }
    }
}
