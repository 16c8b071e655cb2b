//! Commitments and cells of Ethereum's blobs (EIP-4844, EIP-7594) beside c-kzg: sums over the 4096 points of the ceremony's setup, and
//! transforms of 4096 and 8192 elements.

use c_kzg::{BYTES_PER_BLOB, Blob, KzgSettings, ethereum_kzg_settings};
use cantus::zk::{
    Affine, Bls12381Fr, Bls12381G1, Check, Field, FieldTensor, PointEncoding, PointTensor, multi_scalar_mul,
};

use super::{elements, engines};

const LENGTH: usize = 4096;

/// The start of C's `KZGSettings`: Rust's form of it keeps the same members private.
#[repr(C)]
struct Settings {
    roots: [*const blst::blst_fr; 3],
    monomials: *const blst::blst_p1,
    lagrange: *const blst::blst_p1,
}

/// The points of the setup: of the powers of x, and of Lagrange's polynomials in the order of blobs.
fn setup(settings: &KzgSettings) -> [Vec<Affine<Bls12381G1>>; 2] {
    // SAFETY: KzgSettings is repr(C) and starts with these members in the version that Cargo.toml pins; each pointer is to LENGTH points,
    // which live as long as `settings`.
    let [monomials, lagrange] = unsafe {
        let settings = &*std::ptr::from_ref(settings).cast::<Settings>();
        assert!(settings.roots.iter().all(|roots| !roots.is_null()));
        [settings.monomials, settings.lagrange].map(|points| std::slice::from_raw_parts(points, LENGTH))
    };
    [monomials, lagrange].map(|points| {
        let read = |point: &blst::blst_p1| {
            let mut bytes = [0; 48];
            // SAFETY: both pointers are to whole values.
            unsafe { blst::blst_p1_compress(bytes.as_mut_ptr(), point) };
            Affine::from_bytes(&bytes, PointEncoding::Compressed).unwrap()
        };
        points.iter().map(read).collect()
    })
}

/// Blobs and cells hold values in the order of their numbers' bits reversed.
fn reversed<T: Copy>(list: &[T]) -> Vec<T> {
    let bits = list.len().ilog2();
    (0..list.len()).map(|place| list[place.reverse_bits() >> (usize::BITS - bits)]).collect()
}

#[test]
fn commitments_and_cells_are_c_kzgs() {
    let settings = ethereum_kzg_settings(0);
    let [monomials, lagrange] = setup(settings);
    let (name, engine) = engines().remove(0);
    let of = |list: &[Bls12381Fr]| FieldTensor::from_elements(&engine, list).unwrap();
    let points = |list: &[_]| PointTensor::from_points(&engine, list, Check::Strict).unwrap();
    let (monomials, lagrange) = (points(&monomials), points(&lagrange));
    let skewed: Vec<_> = (0..LENGTH as u64).map(|place| Bls12381Fr::from_u64(u64::from(place % 64 == 0))).collect();
    for values in [elements::<Bls12381Fr>(LENGTH, 31), skewed] {
        let blob = of(&values).to_be_bytes().unwrap();
        assert_eq!(blob.len(), BYTES_PER_BLOB);
        let blob = Blob::from_bytes(&blob).unwrap();
        let commitment = settings.blob_to_kzg_commitment(&blob).unwrap().to_bytes();
        let ours = multi_scalar_mul(&of(&values), &lagrange).unwrap();
        assert_eq!(ours.to_bytes(PointEncoding::Compressed), commitment.as_slice(), "by values on {name}");
        let coefficients = of(&reversed(&values)).inverse_ntt().unwrap();
        let ours = multi_scalar_mul(&coefficients, &monomials).unwrap();
        assert_eq!(ours.to_bytes(PointEncoding::Compressed), commitment.as_slice(), "by coefficients on {name}");
        let mut coefficients = coefficients.to_vec().unwrap();
        coefficients.resize(2 * LENGTH, Bls12381Fr::ZERO);
        let extended = reversed(&of(&coefficients).ntt().unwrap().to_vec().unwrap());
        let cells: Vec<u8> = settings.compute_cells(&blob).unwrap().iter().flat_map(|cell| cell.to_bytes()).collect();
        assert!(of(&extended).to_be_bytes().unwrap() == cells, "cells on {name}");
    }
}
