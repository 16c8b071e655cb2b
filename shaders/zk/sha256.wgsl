// SHA-256 (FIPS 180-4) over padded blocks of 16 words, the bytes of each in memory's order.
alias Digest = array<u32, 8>;
const BLOCK_WORDS = 16u;

fn hash_start() -> Digest {
    return Digest(0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au, 0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u);
}

fn swapped(word: u32) -> u32 {
    return (word << 24u) | ((word & 0xff00u) << 8u) | ((word >> 8u) & 0xff00u) | (word >> 24u);
}

fn turned(word: u32, by: u32) -> u32 { return (word >> by) | (word << (32u - by)); }

var<private> ROUND: array<u32, 64> = array<u32, 64>(
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u,
    0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u,
    0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau,
    0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u,
    0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u,
    0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u,
    0x19a4c116u, 0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
    0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u,
);

fn hash_block(before: Digest, block: array<u32, 16>) -> Digest {
    var w = block;
    for (var i = 0u; i < 16u; i++) { w[i] = swapped(w[i]); }
    var a = before[0];
    var b = before[1];
    var c = before[2];
    var d = before[3];
    var e = before[4];
    var f = before[5];
    var g = before[6];
    var h = before[7];
    for (var round = 0u; round < 64u; round++) {
        let at = round % 16u;
        if round >= 16u {
            let x = w[(round + 1u) % 16u];
            let y = w[(round + 14u) % 16u];
            w[at] += (turned(x, 7u) ^ turned(x, 18u) ^ (x >> 3u)) + w[(round + 9u) % 16u] + (turned(y, 17u) ^ turned(y, 19u) ^ (y >> 10u));
        }
        let first = h + (turned(e, 6u) ^ turned(e, 11u) ^ turned(e, 25u)) + ((e & f) ^ (~e & g)) + ROUND[round] + w[at];
        let second = (turned(a, 2u) ^ turned(a, 13u) ^ turned(a, 22u)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + first;
        d = c;
        c = b;
        b = a;
        a = first + second;
    }
    return Digest(
        before[0] + a, before[1] + b, before[2] + c, before[3] + d, before[4] + e, before[5] + f, before[6] + g, before[7] + h,
    );
}

fn hash_end(state: Digest) -> Digest {
    return Digest(
        swapped(state[0]), swapped(state[1]), swapped(state[2]), swapped(state[3]),
        swapped(state[4]), swapped(state[5]), swapped(state[6]), swapped(state[7]),
    );
}
