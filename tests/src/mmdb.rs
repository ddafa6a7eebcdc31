//! Small databases in the MaxMind DB format, for networks that no real one has.

use ipnet::Ipv4Net;

/// Record of a node: nothing, another node, or the data of a country.
#[derive(Clone, Copy, Debug)]
enum Record {
    Nothing,
    Node(usize),
    Data(usize),
}

/// Returns a database in which these networks, of which none contains another one, are in countries.
pub fn countries(networks: &[(Ipv4Net, &str)]) -> Vec<u8> {
    let (mut nodes, mut data) = (vec![[Record::Nothing; 2]], Vec::new());
    for (network, code) in networks {
        let offset = data.len();
        map(&mut data, 1);
        text(&mut data, "country");
        map(&mut data, 1);
        text(&mut data, "iso_code");
        text(&mut data, code);
        insert(&mut nodes, *network, offset);
    }
    let mut file = Vec::new();
    for record in nodes.iter().flatten() {
        let value = match record {
            Record::Nothing => nodes.len(),
            Record::Node(number) => *number,
            // Pointers count from the end of the tree, and 16 zeros precede the data.
            Record::Data(offset) => nodes.len() + 16 + offset,
        };
        file.extend(&u32::try_from(value).expect("a small database").to_be_bytes()[1..]);
    }
    file.extend([0; 16]);
    file.extend(data);
    file.extend(b"\xab\xcd\xefMaxMind.com");
    metadata(&mut file, nodes.len());
    file
}

fn insert(nodes: &mut Vec<[Record; 2]>, network: Ipv4Net, offset: usize) {
    let length = usize::from(network.prefix_len());
    let bits = u32::from(network.network());
    let mut at = 0;
    for position in 0..length {
        let side = usize::from(bits & (1 << (31 - position)) != 0);
        if position + 1 == length {
            nodes[at][side] = Record::Data(offset);
        } else if let Record::Node(next) = nodes[at][side] {
            at = next;
        } else {
            let next = nodes.len();
            nodes.push([Record::Nothing; 2]);
            nodes[at][side] = Record::Node(next);
            at = next;
        }
    }
}

fn metadata(file: &mut Vec<u8>, nodes: usize) {
    map(file, 9);
    let number = |file: &mut Vec<u8>, name: &str, kind: u8, value: u16| {
        text(file, name);
        file.push(kind << 5 | 2);
        file.extend(value.to_be_bytes());
    };
    const UINT16: u8 = 5;
    const UINT32: u8 = 6;
    number(file, "binary_format_major_version", UINT16, 2);
    number(file, "binary_format_minor_version", UINT16, 0);
    number(file, "ip_version", UINT16, 4);
    number(file, "record_size", UINT16, 24);
    number(file, "node_count", UINT32, u16::try_from(nodes).expect("a small database"));
    text(file, "database_type");
    text(file, "Test-Country");
    // Types above 7 have a byte of their own: 64-bit numbers, and lists.
    text(file, "build_epoch");
    file.extend([1, 9 - 7, 1]);
    text(file, "languages");
    file.extend([0, 11 - 7]);
    text(file, "description");
    map(file, 0);
}

fn map(file: &mut Vec<u8>, pairs: u8) {
    file.push(7 << 5 | pairs);
}

/// Adds a text of at most 28 bytes.
fn text(file: &mut Vec<u8>, text: &str) {
    let length = u8::try_from(text.len()).expect("a short text");
    assert!(length < 29, "{text}");
    file.push(2 << 5 | length);
    file.extend(text.as_bytes());
}
