//! How likely a token ends between two letters.

/// One row per first letter, two bits per second letter: 0 if a token hardly ever ends between the two, 3 if every
/// other one does. Real words have few pairs of the last kind, random letters have many. The five low bits of a
/// letter are its index in the alphabet in either case; the indexes before the first and after the last are empty.
const PAIRS: [u64; 32] = [
    0x0,
    0x10440cc0661c0c,
    0x33f69f7ccbf7f4,
    0x37f49e3834e274,
    0x35eb6e7ae7f0e4,
    0x24580180aa5464,
    0x31f49f29f787f8,
    0x3be55f9af9b7f8,
    0x37f8ae6bfbf3f4,
    0xcc804002a0004,
    0x3ff77f7feff3f8,
    0x3bb97f9efb77e8,
    0x33a5aa68b6a0e4,
    0x37b67d65f7f2d4,
    0x22e47e5e7b2078,
    0x25000c40160808,
    0x37e44d28f8f2b4,
    0x3ff2ebfcfffffc,
    0x32985b16776174,
    0x3bb4297a75a3b8,
    0x22754e7af4e2b4,
    0x28e80c80661144,
    0x3bfeef7ff7f2f4,
    0x393f5f4ff4b6f4,
    0x35fcfdfbfbfbb8,
    0x2bbd6d59fbf7fc,
    0x26baffbffbf7f4,
    0x0,
    0x0,
    0x0,
    0x0,
    0x0,
];

/// The row of a character that is not a letter.
pub(super) const NO_ROW: u64 = 0;

/// Returns the row of an ASCII letter.
pub(super) fn row_of(first: u8) -> u64 {
    PAIRS.get(index(first)).copied().unwrap_or(NO_ROW)
}

/// Returns how likely a token ends between the letter of the row and the second letter, from 0 to 3.
pub(super) fn split_level(row: u64, second: u8) -> usize {
    usize::from((row >> (2 * index(second))) as u8 & 3)
}

fn index(letter: u8) -> usize {
    usize::from(letter & 0x1f)
}
