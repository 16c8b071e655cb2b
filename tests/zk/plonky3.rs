//! Every device beside Plonky3: transforms of the small fields, Poseidon2, its sponge and trees over it.

use cantus::Engine;
use cantus::zk::{BabyBear, FieldTensor, Goldilocks, KoalaBear, PrimeField};
use p3_dft::{Radix2Dit, TwoAdicSubgroupDft};
use p3_field::{PackedValue, PrimeField64, TwoAdicField};
use p3_matrix::Matrix;
use p3_matrix::dense::RowMajorMatrix;
use p3_merkle_tree::MerkleTree;
use p3_symmetric::{CryptographicPermutation, PaddingFreeSponge, Permutation, TruncatedPermutation};

use super::{elements, engines, some_engines};

fn theirs<F: PrimeField, T: PrimeField64>(ours: &[F]) -> Vec<T> {
    let value = |x: &F| x.to_limbs().iter().rev().fold(0_u64, |value, &limb| value << 32 | u64::from(limb));
    ours.iter().map(|x| T::from_u64(value(x))).collect()
}

fn ours<F: PrimeField, T: PrimeField64>(theirs: &[T]) -> Vec<F> {
    theirs.iter().map(|x| F::from_u64(x.as_canonical_u64())).collect()
}

fn transforms<F: PrimeField, T: PrimeField64 + TwoAdicField>(engine: &Engine, name: &str, rows: usize, log: u32) {
    let length = 1 << log;
    let list = elements::<F>(rows * length, 41);
    let tensor = FieldTensor::from_shaped(engine, &list, &[rows, length]).unwrap();
    // Their columns are our rows. Each side chose a root of unity: ours is theirs to an odd power e, so value k of ours is value k e of theirs.
    let columns = RowMajorMatrix::new(theirs::<F, T>(&list), length).transpose();
    let root: T = theirs(&[F::root_of_unity(log).unwrap()])[0];
    let own = T::two_adic_generator(log as usize);
    let e = (1..length).step_by(2).find(|&e| own.exp_u64(e as u64) == root).unwrap();
    let check = |what: &str, values: FieldTensor<F>, expected: RowMajorMatrix<T>| {
        let expected = expected.transpose();
        let ordered = expected.row_slices().flat_map(|row| (0..length).map(|k| row[k * e % length]));
        let expected: Vec<F> = ours(&ordered.collect::<Vec<T>>());
        assert!(values.to_vec().unwrap() == expected, "{what}, {rows} x 2^{log} of {} on {name}", F::KIND);
    };
    let dft = Radix2Dit::default();
    let values = tensor.ntt().unwrap();
    check("transform", values.clone(), dft.dft_batch(columns.clone()).to_row_major_matrix());
    assert!(values.inverse_ntt().unwrap().to_vec().unwrap() == list, "back, of {} on {name}", F::KIND);
    let shift = F::from_u64(F::GENERATOR);
    let values = tensor.coset_ntt(shift).unwrap();
    let expected = dft.coset_dft_batch(columns, theirs(&[shift])[0]).to_row_major_matrix();
    check("transform on a coset", values.clone(), expected);
    let back = values.inverse_coset_ntt(shift).unwrap();
    assert!(back.to_vec().unwrap() == list, "back from a coset, of {} on {name}", F::KIND);
}

#[test]
fn transforms_are_plonky3s() {
    for (name, engine) in some_engines(10) {
        transforms::<BabyBear, p3_baby_bear::BabyBear>(&engine, &name, 3, 9);
        transforms::<KoalaBear, p3_koala_bear::KoalaBear>(&engine, &name, 1, 10);
        transforms::<Goldilocks, p3_goldilocks::Goldilocks>(&engine, &name, 2, 8);
    }
    // Rows of one thread each, and one of all.
    let (name, engine) = engines().remove(0);
    transforms::<BabyBear, p3_baby_bear::BabyBear>(&engine, &name, 5, 11);
    transforms::<KoalaBear, p3_koala_bear::KoalaBear>(&engine, &name, 1, 16);
    transforms::<Goldilocks, p3_goldilocks::Goldilocks>(&engine, &name, 1, 14);
}

/// Rows permuted, absorbed by eights, and the root over their digests of eight.
fn hashes<F, T, P, const WIDTH: usize>(engine: &Engine, name: &str, permutation: P)
where
    F: PrimeField,
    T: PrimeField64,
    P: CryptographicPermutation<[T; WIDTH]> + CryptographicPermutation<[T::Packing; WIDTH]> + Clone + Sync,
    T::Packing: PackedValue<Value = T>,
{
    let list = elements::<F>(37 * WIDTH, 42);
    let rows = FieldTensor::from_shaped(engine, &list, &[37, WIDTH]).unwrap();
    let expected: Vec<T> = theirs::<F, T>(&list)
        .as_chunks::<WIDTH>()
        .0
        .iter()
        .flat_map(|row| Permutation::permute(&permutation, *row))
        .collect();
    assert!(rows.poseidon2().unwrap().to_vec().unwrap() == ours(&expected), "{WIDTH} of {} on {name}", F::KIND);
    // Whose last elements fill no rate.
    let list = elements::<F>(32 * 19, 43);
    let leaves = FieldTensor::from_shaped(engine, &list, &[32, 19]).unwrap();
    let digests = leaves.poseidon2_hash(WIDTH, 8, 8).unwrap();
    let sponge = PaddingFreeSponge::<P, WIDTH, 8, 8>::new(permutation.clone());
    let compression = TruncatedPermutation::<P, 2, 8, WIDTH>::new(permutation);
    let matrix = RowMajorMatrix::new(theirs::<F, T>(&list), 19);
    let tree = MerkleTree::<T, T, _, 2, 8>::new::<T::Packing, T::Packing, _, _>(&sponge, &compression, vec![matrix]);
    let root: Vec<F> = ours(&tree.root().into_iter().collect::<Vec<T>>());
    assert_eq!(digests.poseidon2_root(WIDTH).unwrap(), root, "tree of {} on {name}", F::KIND);
}

#[test]
fn poseidon2_and_its_trees_are_plonky3s() {
    for (name, engine) in some_engines(11) {
        hashes::<BabyBear, _, _, 16>(&engine, &name, p3_baby_bear::default_babybear_poseidon2_16());
        hashes::<KoalaBear, _, _, 24>(&engine, &name, p3_koala_bear::default_koalabear_poseidon2_24());
    }
    let (name, engine) = engines().remove(0);
    hashes::<BabyBear, _, _, 24>(&engine, &name, p3_baby_bear::default_babybear_poseidon2_24());
    hashes::<KoalaBear, _, _, 16>(&engine, &name, p3_koala_bear::default_koalabear_poseidon2_16());
}
