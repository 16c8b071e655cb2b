//! Hashes: NIST's examples of SHA-256, Ethereum's constants of Keccak-256, and trees.

use cantus::zk::{HashFunction, MerkleTree, hash};

use super::engines;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn digests_are_those_of_the_standards_on_every_device() {
    let million = vec![b'a'; 10_000];
    let two_blocks = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    for (name, engine) in engines() {
        let messages: [&[u8]; 4] = [b"", b"abc", two_blocks, &million];
        let sha = hash(&engine, HashFunction::Sha256, &messages).unwrap();
        let expected = [
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        ];
        for (digest, expected) in sha.iter().zip(expected) {
            assert_eq!(hex(digest), expected, "{name}");
        }
        let keccak = hash(&engine, HashFunction::Keccak256, &messages).unwrap();
        // The hash of no code, and that of "abc".
        assert_eq!(hex(&keccak[0]), "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470", "{name}");
        assert_eq!(hex(&keccak[1]), "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45", "{name}");
        // Lengths around the ends of blocks agree with the first device.
        let all: Vec<u8> = (0..300_u32).map(|i| (i * 7) as u8).collect();
        let lengths: Vec<&[u8]> = (50..70).chain(118..140).chain(262..280).map(|length| &all[..length]).collect();
        let (_, first) = engines().remove(0);
        for function in [HashFunction::Sha256, HashFunction::Keccak256] {
            let own = hash(&engine, function, &lengths).unwrap();
            assert_eq!(own, hash(&first, function, &lengths).unwrap(), "{function} on {name}");
        }
    }
}

#[test]
fn trees_are_trees_of_pairs_on_every_device() {
    let leaves: Vec<[u8; 5]> = (0..32).map(|i| [i, 1, 2, 3, 4]).collect();
    let messages: Vec<&[u8]> = leaves.iter().map(|leaf| &leaf[..]).collect();
    for (name, engine) in engines() {
        for function in [HashFunction::Sha256, HashFunction::Keccak256] {
            let tree = MerkleTree::new(&engine, function, &messages).unwrap();
            let mut level = hash(&engine, function, &messages).unwrap();
            while level.len() > 1 {
                let pairs: Vec<Vec<u8>> = level.chunks(2).map(|pair| pair.concat()).collect();
                let pairs: Vec<&[u8]> = pairs.iter().map(|pair| &pair[..]).collect();
                level = hash(&engine, function, &pairs).unwrap();
            }
            let root = tree.root().unwrap();
            assert_eq!(root, level[0], "{function} on {name}");
            let path = tree.path(19).unwrap();
            assert!(MerkleTree::verify(function, &root, messages[19], 19, &path));
            assert!(!MerkleTree::verify(function, &root, messages[18], 19, &path));
            assert!(!MerkleTree::verify(function, &root, messages[19], 18, &path));
            assert!(!MerkleTree::verify(function, &root, messages[19], 19 + 32, &path));
        }
        assert!(MerkleTree::new(&engine, HashFunction::Sha256, &messages[..3]).is_err());
    }
}
