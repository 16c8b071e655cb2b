//! Proofs on the CPU backend: `cantus::zk` through its public calls, beside arkworks and Plonky3 in the same program and in turn.
//!
//! Each row's results are compared before anything is timed. Sides take turns; medians of all turns count, least times in brackets. Both use all
//! processors. Plonky3 chooses its vectors when it is compiled, ours at run time: build with `RUSTFLAGS="-C target-cpu=native"` to give it those of
//! this machine. `from values` is with tensors made of the host's elements and points, `kept` with tensors that are there.
//!
//! `RUSTFLAGS="-C target-cpu=native" cargo bench -p cantus-benches --bench proofs [-- FILTER [TURNS]]`

#![allow(clippy::expect_used, reason = "a bench that cannot run stops")]

use std::time::{Duration, Instant};

use ark_ec::{AffineRepr, CurveGroup, VariableBaseMSM};
use ark_ff::{BigInt, PrimeField as _};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use cantus::zk::{
    BabyBear, Bn254Fr, Bn254G1, Check, Curve, FieldTensor, PointTensor, PrimeField, Projective, multi_scalar_mul,
};
use cantus::{Config, Engine, Fallback};
use p3_baby_bear::{BabyBear as Theirs, default_babybear_poseidon2_16, default_babybear_poseidon2_24};
use p3_dft::{Radix2DitParallel, TwoAdicSubgroupDft};
use p3_field::{PackedValue, PrimeCharacteristicRing, PrimeField32};
use p3_matrix::Matrix;
use p3_matrix::dense::RowMajorMatrix;
use p3_merkle_tree::MerkleTree;
use p3_monty_31::dft::RecursiveDft;
use p3_symmetric::{PaddingFreeSponge, Permutation, TruncatedPermutation};
use rayon::prelude::*;

type Packed = <Theirs as p3_field::Field>::Packing;

/// Between what one side does and what the other does: threads of the other side spin for a while.
const PAUSE: Duration = Duration::from_millis(2);

struct Bench {
    engine: Engine,
    filter: String,
    turns: usize,
}

impl Bench {
    fn wants(&self, name: &str) -> bool {
        name.contains(&self.filter)
    }

    /// Sides by name, the first of which is ours. Each gives how long it took.
    fn row(&self, name: &str, sides: &mut [(&str, &mut dyn FnMut() -> Duration)]) {
        let mut times = vec![Vec::new(); sides.len()];
        for turn in 0..=self.turns {
            for ((_, run), times) in sides.iter_mut().zip(&mut times) {
                std::thread::sleep(PAUSE);
                let time = run();
                if turn > 0 {
                    times.push(time.as_secs_f64() * 1e3);
                }
            }
        }
        let figures: Vec<[f64; 2]> = times
            .into_iter()
            .map(|mut times| {
                times.sort_by(f64::total_cmp);
                [times.get(times.len() / 2), times.first()].map(|time| time.copied().unwrap_or(f64::NAN))
            })
            .collect();
        let [ours, least] = figures.first().copied().unwrap_or([f64::NAN; 2]);
        println!("{name}\n    {:28} {ours:10.4} ms ({least:.4})", "cantus");
        for ((side, _), [median, their_least]) in sides.iter().zip(figures).skip(1) {
            let (ratio, of_least) = (ours / median, least / their_least);
            println!("    {side:28} {median:10.4} ms ({their_least:.4})   ratio {ratio:.2} ({of_least:.2})");
        }
    }
}

fn timed<R>(work: impl FnOnce() -> R) -> Duration {
    let start = Instant::now();
    let result = work();
    let time = start.elapsed();
    drop(result);
    time
}

/// Numbers that nobody chose.
fn elements<F: PrimeField>(count: usize, seed: u64) -> Vec<F> {
    let mut state = seed;
    let mut limb = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    (0..count).map(|_| F::reduced_from_limbs(&(0..F::WORDS).map(|_| limb()).collect::<Vec<_>>())).collect()
}

fn to_ark(scalars: &[Bn254Fr]) -> Vec<ark_bn254::Fr> {
    scalars.iter().map(|x| ark_bn254::Fr::from_bigint(BigInt(x.canonical())).expect("below the modulus")).collect()
}

fn to_plonky3(list: &[BabyBear]) -> Vec<Theirs> {
    list.iter().map(|x| Theirs::from_u32(x.value())).collect()
}

fn products(bench: &Bench) {
    let name = "field_mul, BN254's scalars, 2^20";
    if !bench.wants(name) {
        return;
    }
    let (a, b) = (elements::<Bn254Fr>(1 << 20, 1), elements::<Bn254Fr>(1 << 20, 2));
    let of = |list: &[Bn254Fr]| FieldTensor::from_elements(&bench.engine, list).expect("a tensor");
    let (x, y) = (of(&a), of(&b));
    let (theirs_a, theirs_b) = (to_ark(&a), to_ark(&b));
    let product = |a: &[ark_bn254::Fr], b: &[ark_bn254::Fr]| -> Vec<ark_bn254::Fr> {
        a.par_iter().with_min_len(1 << 12).zip(b).map(|(a, b)| a * b).collect()
    };
    assert!(to_ark(&x.mul(&y).and_then(|y| y.to_vec()).expect("products")) == product(&theirs_a, &theirs_b));
    let run = || {
        let product = x.mul(&y).expect("products");
        bench.engine.finish().expect("the work ends");
        product
    };
    bench.row(
        name,
        &mut [("", &mut || timed(run)), ("arkworks, a new vector", &mut || timed(|| product(&theirs_a, &theirs_b)))],
    );
}

fn sums(bench: &Bench) {
    let counts = [1, 2, 16, 64, 128, 256, 512, 1 << 10, 1 << 14, 1 << 16, 1 << 18];
    let names = counts.map(|count| format!("multi_scalar_mul, BN254 G1, {count}"));
    let most = counts.iter().zip(&names).filter(|(_, name)| bench.wants(name)).map(|(&count, _)| count).max();
    let scalars = elements::<Bn254Fr>(most.unwrap_or(0), 3);
    let g = Projective::from(Bn254G1::generator());
    let multiples: Vec<_> =
        elements::<Bn254Fr>(most.unwrap_or(0), 4).par_iter().map(|x| g.times(&x.canonical()[..2])).collect();
    let points = Projective::to_affines(&multiples);
    let their_points: Vec<ark_bn254::G1Affine> = points
        .iter()
        .map(|point| {
            let [x, y] = [point.x, point.y].map(|x| BigInt(x.canonical()).into());
            ark_bn254::G1Affine::new_unchecked(x, y)
        })
        .collect();
    let their_scalars = to_ark(&scalars);
    for (&count, name) in counts.iter().zip(&names).filter(|(_, name)| bench.wants(name)) {
        let tensors = || {
            let points = PointTensor::from_points(&bench.engine, &points[..count], Check::Trusted).expect("points");
            (FieldTensor::from_elements(&bench.engine, &scalars[..count]).expect("scalars"), points)
        };
        let kept = tensors();
        let sum = || {
            let (scalars, points) = tensors();
            multi_scalar_mul(&scalars, &points).expect("a sum")
        };
        let theirs = || ark_bn254::G1Projective::msm(&their_points[..count], &their_scalars[..count]).expect("a sum");
        let expected = theirs().into_affine().x().map(|x| x.into_bigint().0);
        assert_eq!(Some(sum().x.canonical()), expected, "not the same sum");
        // Many of what is small, so that a clock can tell.
        let times = (256 / count).max(1) as u32;
        let many = |work: &dyn Fn()| timed(|| (0..times).for_each(|_| work())) / times;
        let of_kept = || _ = multi_scalar_mul(&kept.0, &kept.1).expect("a sum");
        let theirs = &mut || many(&|| _ = theirs());
        bench.row(&format!("{name}, from values"), &mut [("", &mut || many(&|| _ = sum())), ("arkworks", theirs)]);
        bench.row(&format!("{name}, kept"), &mut [("", &mut || many(&of_kept)), ("arkworks", theirs)]);
    }
}

fn transforms_of_scalars(bench: &Bench) {
    for log in [12, 16, 20] {
        let name = format!("ntt, BN254's scalars, 2^{log}");
        if !bench.wants(&name) {
            continue;
        }
        let list = elements::<Bn254Fr>(1 << log, 5);
        let tensor = FieldTensor::from_elements(&bench.engine, &list).expect("a tensor");
        let domain = Radix2EvaluationDomain::<ark_bn254::Fr>::new(1 << log).expect("a domain");
        let theirs = to_ark(&list);
        let mut back = domain.fft(&theirs);
        domain.ifft_in_place(&mut back);
        assert!(back == theirs);
        assert!(tensor.ntt().and_then(|y| y.inverse_ntt()).and_then(|x| x.to_vec()).expect("back") == list);
        let run = || {
            let values = tensor.ntt().expect("a transform");
            bench.engine.finish().expect("the work ends");
            values
        };
        bench.row(&name, &mut [("", &mut || timed(run)), ("arkworks", &mut || timed(|| domain.fft(&theirs)))]);
    }
}

fn transforms(bench: &Bench) {
    for (log, rows) in [(10, 1), (12, 1), (16, 1), (20, 1), (22, 1), (16, 64)] {
        let name = format!("ntt, BabyBear, {rows} x 2^{log}");
        if !bench.wants(&name) {
            continue;
        }
        let length = 1 << log;
        let list = elements::<BabyBear>(rows * length, 6);
        let tensor = FieldTensor::from_shaped(&bench.engine, &list, &[rows, length]).expect("a tensor");
        // Their columns are our rows.
        let columns = RowMajorMatrix::new(to_plonky3(&list), length).transpose();
        let recursive = RecursiveDft::<Theirs>::new(length);
        let parallel = Radix2DitParallel::<Theirs>::default();
        let run = || {
            let values = tensor.ntt().expect("a transform");
            bench.engine.finish().expect("the work ends");
            values
        };
        // Both have the same root of unity.
        let ordered = recursive.dft_batch(columns.clone()).to_row_major_matrix();
        assert!(ordered.transpose().values == to_plonky3(&run().to_vec().expect("values")), "not the same values");
        // Many of what is small, so that a clock can tell.
        let times = ((1 << 16) / (rows * length)).max(1);
        let of = |work: &dyn Fn(RowMajorMatrix<Theirs>)| {
            let copies = vec![columns.clone(); times];
            timed(|| copies.into_iter().for_each(work)) / times as u32
        };
        let ours = || timed(|| (0..times).for_each(|_| drop(run()))) / times as u32;
        bench.row(
            &name,
            &mut [
                ("", &mut || ours()),
                ("Plonky3, recursive", &mut || of(&|x| drop(recursive.dft_batch(x)))),
                ("the same, put in order", &mut || of(&|x| drop(recursive.dft_batch(x).to_row_major_matrix()))),
                ("Plonky3, parallel", &mut || of(&|x| drop(parallel.dft_batch(x)))),
                ("the same, put in order", &mut || of(&|x| drop(parallel.dft_batch(x).to_row_major_matrix()))),
            ],
        );
    }
}

fn permutations<const WIDTH: usize, P>(bench: &Bench, permutation: &P)
where
    P: Permutation<[Packed; WIDTH]> + Sync,
{
    let rows = 1 << 16;
    let name = format!("poseidon2, BabyBear, 2^16 rows of {WIDTH}");
    if !bench.wants(&name) {
        return;
    }
    let list = elements::<BabyBear>(rows * WIDTH, 7);
    let tensor = FieldTensor::from_shaped(&bench.engine, &list, &[rows, WIDTH]).expect("a tensor");
    let run = || {
        let permuted = tensor.poseidon2().expect("permutations");
        bench.engine.finish().expect("the work ends");
        permuted
    };
    // Theirs are in vectors already.
    let theirs = to_plonky3(&list);
    let lanes = Packed::WIDTH;
    let packed =
        |group: usize| std::array::from_fn(|i| Packed::from_fn(|lane| theirs[(group * lanes + lane) * WIDTH + i]));
    let states: Vec<[Packed; WIDTH]> = (0..rows / lanes).map(packed).collect();
    let permute = |states: &mut Vec<[Packed; WIDTH]>| {
        states.par_iter_mut().with_min_len(16).for_each(|state| permutation.permute_mut(state));
    };
    let mut permuted = states.clone();
    permute(&mut permuted);
    let ours = to_plonky3(&run().to_vec().expect("values"));
    for (row, values) in ours.as_chunks::<WIDTH>().0.iter().enumerate() {
        let state = &permuted[row / lanes];
        assert!((0..WIDTH).all(|i| state[i].as_slice()[row % lanes] == values[i]), "not the same values");
    }
    bench.row(
        &name,
        &mut [
            ("", &mut || timed(run)),
            (&format!("Plonky3, {lanes} lanes"), &mut || {
                let mut states = states.clone();
                timed(|| permute(&mut states))
            }),
        ],
    );
}

fn trees(bench: &Bench) {
    let name = "tree by Poseidon2 of 16, BabyBear, 2^16 leaves of 8";
    if !bench.wants(name) {
        return;
    }
    let list = elements::<BabyBear>(8 << 16, 8);
    let tensor = FieldTensor::from_shaped(&bench.engine, &list, &[1 << 16, 8]).expect("a tensor");
    let root = || tensor.poseidon2_hash(16, 8, 8).and_then(|digests| digests.poseidon2_root(16)).expect("a root");
    let permutation = default_babybear_poseidon2_16();
    let sponge = PaddingFreeSponge::<_, 16, 8, 8>::new(permutation.clone());
    let compression = TruncatedPermutation::<_, 2, 8, 16>::new(permutation);
    let leaves = RowMajorMatrix::new(to_plonky3(&list), 8);
    let tree = |leaves| {
        MerkleTree::<Theirs, Theirs, _, 2, 8>::new::<Packed, Packed, _, _>(&sponge, &compression, vec![leaves])
    };
    let theirs: Vec<u32> = tree(leaves.clone()).root().into_iter().map(|x| x.as_canonical_u32()).collect();
    assert_eq!(root().into_iter().map(BabyBear::value).collect::<Vec<_>>(), theirs, "not the same root");
    bench.row(
        name,
        &mut [
            ("", &mut || timed(root)),
            ("Plonky3", &mut || {
                let leaves = leaves.clone();
                timed(|| tree(leaves))
            }),
        ],
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let filter = arguments.first().cloned().unwrap_or_default();
    let turns = arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(21);
    let builder = Engine::builder().config(Config::default()).backend("cpu").fallback(Fallback::Never);
    let engine = builder.build().expect("the CPU");
    println!("{}, {turns} turns; Plonky3's vectors have {} lanes", engine.selected().device.name, Packed::WIDTH);
    let bench = Bench { engine, filter, turns };
    products(&bench);
    sums(&bench);
    transforms_of_scalars(&bench);
    transforms(&bench);
    permutations::<16, _>(&bench, &default_babybear_poseidon2_16());
    permutations::<24, _>(&bench, &default_babybear_poseidon2_24());
    trees(&bench);
}
