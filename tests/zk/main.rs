//! The feature `zk`: kernels on every device against the host's arithmetic, the host's arithmetic against sums and products written out bit by
//! bit, and vectors that others made.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test stops where it fails")]

mod arkworks;
mod curves;
mod eip_196;
mod eip_2537;
#[path = "../../examples/kzg.rs"]
mod example;
mod fields;
mod halo2;
mod hashes;
mod kzg;
mod page;
mod plonky3;
mod polynomials;
mod transforms;
mod vectors;

use std::sync::OnceLock;

use cantus::Engine;
use cantus::zk::PrimeField;
use kit::inputs::Random;

#[test]
fn the_example_of_a_commitment() {
    example::main().unwrap();
}

/// The processor twice, natively and by the executor, and the device that has its turn.
fn engines() -> Vec<(String, Engine)> {
    static EXECUTOR: OnceLock<Engine> = OnceLock::new();
    let executor = EXECUTOR.get_or_init(|| Engine::builder().backend("cpu").reproducible(true).build().unwrap());
    let devices = kit::engine::by_turns().into_iter().map(|engine| (kit::engine::name(engine), engine.clone()));
    let mut all: Vec<_> = devices.collect();
    all.sort_by_key(|(name, _)| !name.starts_with("cpu: "));
    all.push(("cpu: the executor".to_owned(), executor.clone()));
    all
}

/// Returns the devices whose turn it is in tests of many kernels: the CPU, natively, and one other. `./test --all` takes all.
fn some_engines(number: usize) -> Vec<(String, Engine)> {
    let all = engines();
    let others = all.len() - 1;
    let turn = 1 + (number + kit::turn::turn() as usize) % others.max(1);
    let chosen = |place: usize| place == 0 || place == turn || kit::turn::everything();
    all.into_iter().enumerate().filter(|&(place, _)| chosen(place)).map(|(_, engine)| engine).collect()
}

/// Random elements, after those at which carries and reductions go wrong.
fn elements<F: PrimeField>(count: usize, seed: u64) -> Vec<F> {
    let mut random = Random::new(seed);
    let mut list = vec![
        F::ZERO,
        F::ONE,
        -F::ONE,
        F::ONE.double(),
        -F::ONE.double(),
        F::reduced_from_limbs(&vec![u32::MAX; F::WORDS]),
    ];
    for bit in (0..32 * F::WORDS).step_by(13).chain((31..32 * F::WORDS).step_by(32)) {
        let mut limbs = vec![0; F::WORDS];
        limbs[bit / 32] = 1 << (bit % 32);
        let power = F::reduced_from_limbs(&limbs);
        list.extend([power, -power]);
    }
    while list.len() < count {
        let limbs: Vec<u32> = (0..F::WORDS).map(|_| random.u32()).collect();
        list.push(F::reduced_from_limbs(&limbs));
    }
    list.truncate(count);
    list
}
