//! The operations on finite fields and curves that `cantus bench` times: lists of as many elements as the size has
//! cells.

use cantus::zk::{
    self, Affine, BabyBear, Bn254Fr, Bn254G1, Check, Curve, FieldTensor, PointTensor, PrimeField, Projective,
};
use cantus::{Engine, Result};

use super::bench_ops::{Made, Op};

/// Elements that differ in all their words.
fn elements<F: PrimeField>(count: usize, seed: u64) -> Vec<F> {
    let factor = F::from_u64(0x9e37_79b9_7f4a_7c15 ^ seed).square().square();
    let mut value = factor;
    let next = |_| {
        value = value * factor + F::ONE;
        value
    };
    (0..count).map(next).collect()
}

fn points(count: usize) -> Vec<Affine<Bn254G1>> {
    let g = Bn254G1::generator();
    let mut point = Projective::from(g).double();
    let next = |_| {
        point = point.add_affine(g);
        point
    };
    Projective::to_affines(&(0..count).map(next).collect::<Vec<_>>())
}

fn work(run: impl Fn() -> Result<()> + 'static) -> Result<Made> {
    Ok(Made::Work(Box::new(run)))
}

/// A list of elements, or rows of them.
fn tensor<F: PrimeField>(engine: &Engine, seed: u64, shape: &[usize]) -> Result<FieldTensor<F>> {
    FieldTensor::from_shaped(engine, &elements::<F>(shape.iter().product(), seed), shape)
}

/// The rows, which are timed when a filter names them.
pub fn ops() -> Vec<Op> {
    let rows = [
        Op::new("field_mul_bn254", |engine, size| {
            let shape = [size.width * size.height];
            let (a, b) = (tensor::<Bn254Fr>(engine, 1, &shape)?, tensor::<Bn254Fr>(engine, 2, &shape)?);
            work(move || a.mul(&b).map(drop))
        })
        .elements(|w, h| 24.0 * w * h),
        Op::new("msm_bn254", |engine, size| {
            let count = size.width * size.height;
            let scalars = tensor::<Bn254Fr>(engine, 1, &[count])?;
            let points = PointTensor::from_points(engine, &points(count), Check::Trusted)?;
            work(move || zk::multi_scalar_mul(&scalars, &points).map(drop))
        })
        .sides([128, 256, 512]),
        Op::new("ntt_babybear", |engine, size| {
            let x = tensor::<BabyBear>(engine, 1, &[(size.width * size.height).next_power_of_two()])?;
            work(move || x.ntt().map(drop))
        })
        .elements(|w, h| 2.0 * w * h),
        Op::new("poseidon2", |engine, size| {
            let rows = tensor::<BabyBear>(engine, 1, &[(size.width * size.height).div_ceil(16), 16])?;
            work(move || rows.poseidon2().map(drop))
        })
        .elements(|w, h| 2.0 * w * h),
    ];
    rows.into_iter().map(Op::on_demand).collect()
}
