//! `cantus zk`: fields and hashes over files.

use ndarray::{Array1, Array2};

use crate::Place;

const BABYBEAR: u64 = 2_013_265_921;

#[test]
fn elements_of_one_word_are_plain_numbers() {
    let place = Place::new();
    let numbers = |factor: u64| (0..100_u64).map(move |i| ((i * i * factor + 7) % BABYBEAR) as u32);
    for (name, factor) in [("a.npy", 999_983), ("b.npy", 1_000_003)] {
        ndarray_npy::write_npy(place.path(name), &numbers(factor).collect::<Array1<u32>>()).unwrap();
    }
    let done = place.run("zk field mul babybear a.npy b.npy -o c.npy");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let got: Array1<u32> = ndarray_npy::read_npy(place.path("c.npy")).unwrap();
    let expected =
        numbers(999_983).zip(numbers(1_000_003)).map(|(a, b)| (u64::from(a) * u64::from(b) % BABYBEAR) as u32);
    assert_eq!(got, expected.collect::<Array1<u32>>());
    // There and back.
    assert_eq!(place.run("zk field inverse babybear c.npy -o i.npy").code, Some(0));
    assert_eq!(place.run("zk field mul babybear c.npy i.npy -o one.npy").code, Some(0));
    let ones: Array1<u32> = ndarray_npy::read_npy(place.path("one.npy")).unwrap();
    assert!(ones.iter().zip(&got).all(|(&one, &c)| one == u32::from(c != 0)), "{ones}");
}

#[test]
fn limbs_lie_along_the_last_axis() {
    let place = Place::new();
    let mut limbs = Array2::<u32>::zeros((3, 8));
    limbs[[1, 0]] = 5;
    limbs[[2, 7]] = 1;
    ndarray_npy::write_npy(place.path("a.npy"), &limbs).unwrap();
    let done = place.run("zk field add bn254-fr a.npy a.npy -o c.npy");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let got: Array2<u32> = ndarray_npy::read_npy(place.path("c.npy")).unwrap();
    assert_eq!((got[[0, 0]], got[[1, 0]], got[[2, 7]], got.sum()), (0, 10, 2, 12));
}

#[test]
fn a_hash_is_that_of_the_standard() {
    let place = Place::new();
    std::fs::write(place.path("abc"), "abc").unwrap();
    let done = place.run("zk hash sha256 abc");
    // FIPS 180-4's first example.
    let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert!(done.stdout.starts_with(expected), "{}{}", done.stdout, done.stderr);
}

#[test]
fn what_is_no_element_is_an_error() {
    let place = Place::new();
    ndarray_npy::write_npy(place.path("large.npy"), &Array1::from_vec(vec![BABYBEAR as u32])).unwrap();
    ndarray_npy::write_npy(place.path("floats.npy"), &Array1::from_vec(vec![1.0_f32])).unwrap();
    for (arguments, words) in [
        ("zk field neg babybear large.npy -o x.npy", "not below the modulus"),
        ("zk field neg babybear floats.npy -o x.npy", "uint32"),
        ("zk field neg bn254-fr large.npy -o x.npy", "last axis of 8"),
        ("zk field neg babybear nosuch.npy -o x.npy", "nosuch.npy"),
        ("zk hash sha256 nosuch", "nosuch"),
    ] {
        let done = place.run(arguments);
        assert!(done.code == Some(2) && done.stderr.contains(words), "{arguments}: {:?} {}", done.code, done.stderr);
        assert!(!place.path("x.npy").exists(), "{arguments}");
    }
}
