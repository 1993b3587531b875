//! How readily tokens end between two letters.

/// One row a first letter, two bits a second letter: 0 where hardly any token ends between the two,
/// 3 where every other does. Words that people use have few pairs of the last kind, random letters
/// have many.
const PAIRS: [u64; 26] = [
    0x4110330198703,
    0xcfda7df32fdfd,
    0xdfd278e0d389d,
    0xd7adb9eb9fc39,
    0x91600602a9519,
    0xc7d27ca7de1fe,
    0xef957e6be6dfe,
    0xdfe2b9afefcfd,
    0x33201000a8001,
    0xffddfdffbfcfe,
    0xeee5fe7beddfa,
    0xce96a9a2da839,
    0xded9f597dfcb5,
    0x8b91f979ec81e,
    0x9400310058202,
    0xdf9134a3e3cad,
    0xffcbaff3fffff,
    0xca616c59dd85d,
    0xeed0a5e9d68ee,
    0x89d539ebd38ad,
    0xa3a0320198451,
    0xeffbbdffdfcbd,
    0xe4fd7d3fd2dbd,
    0xd7f3f7efefeee,
    0xaef5b567efdff,
    0x9aebfeffefdfd,
];

/// From 0, they stay together, to 3, they part. Both must be ASCII letters.
pub(super) fn parting(first: u8, second: u8) -> usize {
    let column = |letter: u8| usize::from(letter.to_ascii_lowercase().saturating_sub(b'a'));
    let row = PAIRS.get(column(first)).copied().unwrap_or(u64::MAX);
    let bits = row >> (2 * column(second)).min(62);
    usize::try_from(bits & 3).unwrap_or(3)
}
