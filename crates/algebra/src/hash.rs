//! Keccak-256 and SHA-256 on the host, by padded blocks as the kernels take them. `zk` pads messages by it for its kernels, tests compare with it, and the
//! CPU runs it in the kernels' place. Keccak here is Ethereum's, whose padding differs from SHA-3's.

use std::fmt;

/// A hash function of bytes with digests of 32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HashFunction {
    /// Keccak with a capacity of 512 bits and the padding of its submission: Ethereum's.
    Keccak256,
    /// SHA-256 of FIPS 180-4.
    Sha256,
}

impl fmt::Display for HashFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keccak256 => "keccak256",
            Self::Sha256 => "sha256",
        })
    }
}

/// Keccak's constants of rounds.
pub const KECCAK_ROUNDS: [u64; 24] = [
    0x0000_0000_0000_0001,
    0x0000_0000_0000_8082,
    0x8000_0000_0000_808a,
    0x8000_0000_8000_8000,
    0x0000_0000_0000_808b,
    0x0000_0000_8000_0001,
    0x8000_0000_8000_8081,
    0x8000_0000_0000_8009,
    0x0000_0000_0000_008a,
    0x0000_0000_0000_0088,
    0x0000_0000_8000_8009,
    0x0000_0000_8000_000a,
    0x0000_0000_8000_808b,
    0x8000_0000_0000_008b,
    0x8000_0000_0000_8089,
    0x8000_0000_0000_8003,
    0x8000_0000_0000_8002,
    0x8000_0000_0000_0080,
    0x0000_0000_0000_800a,
    0x8000_0000_8000_000a,
    0x8000_0000_8000_8081,
    0x8000_0000_0000_8080,
    0x0000_0000_8000_0001,
    0x8000_0000_8000_8008,
];
/// The target of each lane by rho and pi, from lane 1 on, and its rotation.
pub const KECCAK_LANES: [(usize, u32); 24] = [
    (10, 1),
    (7, 3),
    (11, 6),
    (17, 10),
    (18, 15),
    (3, 21),
    (5, 28),
    (16, 36),
    (8, 45),
    (21, 55),
    (24, 2),
    (4, 14),
    (15, 27),
    (23, 41),
    (19, 56),
    (13, 8),
    (12, 25),
    (2, 43),
    (20, 62),
    (14, 18),
    (22, 39),
    (9, 61),
    (6, 20),
    (1, 44),
];

/// Bytes as words of memory's order.
fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word))
}

impl HashFunction {
    /// 32-bit words of a block.
    #[must_use]
    pub fn block_words(self) -> usize {
        match self {
            Self::Keccak256 => 34,
            Self::Sha256 => 16,
        }
    }

    /// Appends the message, padded to whole blocks, in words of memory's order: at most two blocks more than it has whole.
    pub fn pad(self, message: &[u8], blocks: &mut Vec<u32>) {
        let block = 4 * self.block_words();
        let (whole, rest) = message.split_at(message.len() - message.len() % block);
        blocks.extend(words(whole));
        let mut bytes = rest.to_vec();
        match self {
            Self::Keccak256 => {
                bytes.push(1);
                bytes.resize(bytes.len().next_multiple_of(block), 0);
                if let Some(last) = bytes.last_mut() {
                    *last |= 0x80;
                }
            }
            Self::Sha256 => {
                bytes.push(0x80);
                bytes.resize((bytes.len() + 8).next_multiple_of(block) - 8, 0);
                bytes.extend((8 * message.len() as u64).to_be_bytes());
            }
        }
        blocks.extend(words(&bytes));
    }

    /// The digest of padded blocks, in words of memory's order.
    #[must_use]
    pub fn digest(self, blocks: &[u32]) -> [u32; 8] {
        match self {
            Self::Keccak256 => {
                let mut state = [0_u64; 25];
                for block in blocks.chunks_exact(34) {
                    for (lane, pair) in state.iter_mut().zip(block.chunks_exact(2)) {
                        *lane ^= u64::from(pair[0]) | u64::from(pair[1]) << 32;
                    }
                    keccak(&mut state);
                }
                let mut digest = [0; 8];
                for (pair, lane) in digest.chunks_exact_mut(2).zip(state) {
                    (pair[0], pair[1]) = (lane as u32, (lane >> 32) as u32);
                }
                digest
            }
            Self::Sha256 => {
                let mut state = SHA256_START;
                blocks.as_chunks().0.iter().for_each(|block| sha256(&mut state, block));
                state.map(u32::swap_bytes)
            }
        }
    }
}

fn keccak(state: &mut [u64; 25]) {
    for constant in KECCAK_ROUNDS {
        let mut columns = [0_u64; 5];
        for (place, lane) in state.iter().enumerate() {
            columns[place % 5] ^= lane;
        }
        for (place, lane) in state.iter_mut().enumerate() {
            *lane ^= columns[(place + 4) % 5] ^ columns[(place + 1) % 5].rotate_left(1);
        }
        let mut moved = state[1];
        for (to, by) in KECCAK_LANES {
            (state[to], moved) = (moved.rotate_left(by), state[to]);
        }
        for row in state.as_chunks_mut::<5>().0 {
            let before = *row;
            for (place, lane) in row.iter_mut().enumerate() {
                *lane = before[place] ^ (!before[(place + 1) % 5] & before[(place + 2) % 5]);
            }
        }
        state[0] ^= constant;
    }
}

const SHA256_START: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];
const SHA256_ROUNDS: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

fn sha256(state: &mut [u32; 8], block: &[u32; 16]) {
    let mut w = block.map(u32::swap_bytes);
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (round, constant) in SHA256_ROUNDS.into_iter().enumerate() {
        let at = round % 16;
        if round >= 16 {
            let (x, y) = (w[(round + 1) % 16], w[(round + 14) % 16]);
            let early = x.rotate_right(7) ^ x.rotate_right(18) ^ (x >> 3);
            let late = y.rotate_right(17) ^ y.rotate_right(19) ^ (y >> 10);
            w[at] = w[at].wrapping_add(early).wrapping_add(w[(round + 9) % 16]).wrapping_add(late);
        }
        let first = h
            .wrapping_add(e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25))
            .wrapping_add((e & f) ^ (!e & g))
            .wrapping_add(constant)
            .wrapping_add(w[at]);
        let second =
            (a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22)).wrapping_add((a & b) ^ (a & c) ^ (b & c));
        (h, g, f, e) = (g, f, e, d.wrapping_add(first));
        (d, c, b, a) = (c, b, a, first.wrapping_add(second));
    }
    for (word, own) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(own);
    }
}
