//! Polynomials, sums over corners of cubes, and Poseidon2.

use cantus::zk::{BabyBear, Bn254Fr, Field, FieldTensor, KoalaBear, Poseidon2, PrimeField, sumcheck_round};
use cantus::{Engine, Error};

use super::{elements, engines, some_engines};

fn tensor<F: PrimeField>(engine: &Engine, list: &[F]) -> FieldTensor<F> {
    FieldTensor::from_elements(engine, list).unwrap()
}

#[test]
fn a_quotient_times_its_divisor_and_the_remainder_are_the_polynomial() {
    let (_, engine) = engines().remove(0);
    let (p, z) = (elements::<Bn254Fr>(100, 1), Bn254Fr::from_u64(12_345));
    let (quotient, value) = tensor(&engine, &p).divide_by_root(z).unwrap();
    assert_eq!(tensor(&engine, &p).evaluate(z).unwrap(), value);
    let quotient = quotient.to_vec().unwrap();
    assert_eq!(quotient.len(), 99);
    for (place, &coefficient) in p.iter().enumerate() {
        let above = if place == 0 { value } else { quotient[place - 1] };
        let own = quotient.get(place).map_or(Bn254Fr::ZERO, |&own| own * z);
        assert_eq!(above - own, coefficient);
    }
    assert_eq!(tensor::<Bn254Fr>(&engine, &[]).evaluate(z).unwrap(), Bn254Fr::ZERO);
}

/// All rounds of sumcheck, with the verifier's checks.
#[test]
fn rounds_of_sumcheck_agree_with_each_other() {
    for (name, engine) in some_engines(5) {
        let tables: Vec<Vec<BabyBear>> = (0..3).map(|seed| elements(64, seed)).collect();
        let mut current: Vec<FieldTensor<BabyBear>> = tables.iter().map(|table| tensor(&engine, table)).collect();
        let product = |i: usize| tables.iter().fold(BabyBear::ONE, |product, table| product * table[i]);
        let mut claim = (0..64).fold(BabyBear::ZERO, |sum, i| sum + product(i));
        for round in 0..6_u64 {
            let sums = sumcheck_round(&current.iter().collect::<Vec<_>>()).unwrap();
            assert_eq!(sums.len(), 4);
            assert_eq!(sums[0] + sums[1], claim, "round {round} on {name}");
            let r = BabyBear::from_u64(1_000_003 * (round + 1));
            // The value at r of the polynomial through four points (Lagrange).
            claim = (0..4_u64).fold(BabyBear::ZERO, |sum, i| {
                let others = (0..4_u64).filter(|&j| j != i);
                let basis = others.fold(BabyBear::ONE, |basis, j| {
                    let [i, j] = [i, j].map(BabyBear::from_u64);
                    basis * (r - j) * (i - j).inverse().unwrap()
                });
                sum + basis * sums[i as usize]
            });
            current = current.iter().map(|table| table.fold(r).unwrap()).collect();
        }
        let last = current.iter().map(|table| table.to_vec().unwrap()[0]).fold(BabyBear::ONE, |product, x| product * x);
        assert_eq!(last, claim, "{name}");
    }
    let (_, engine) = engines().remove(0);
    assert!(matches!(tensor(&engine, &elements::<BabyBear>(3, 1)).fold(BabyBear::ONE), Err(Error::Shape(_))));
    assert!(matches!(sumcheck_round::<BabyBear>(&[]), Err(Error::Shape(_))));
}

fn counted<F: PrimeField>(width: usize) -> Vec<F> {
    (0..width as u64).map(F::from_u64).collect()
}

fn permuted<F: PrimeField>(width: usize) -> Vec<F> {
    let mut row = counted::<F>(width);
    Poseidon2::standard(width).unwrap().permute(&mut row);
    row
}

/// The first values of what Plonky3's default instances make of 0, 1, 2, …
#[test]
fn poseidon2_of_small_fields_is_plonky3s() {
    fn check<F: PrimeField>(width: usize, first: [u32; 4], last: u32) {
        let values: Vec<u32> = permuted::<F>(width).into_iter().flat_map(F::to_limbs).collect();
        assert_eq!((&values[..4], values[width - 1]), (&first[..], last), "{width} of {}", F::KIND);
    }
    check::<BabyBear>(16, [1_906_786_279, 1_737_026_427, 1_959_749_225, 700_325_316], 304_856_115);
    check::<BabyBear>(24, [57_973_606, 1_742_549_659, 409_441_332, 409_968_379], 766_005_377);
    check::<KoalaBear>(16, [1_259_554_834, 663_463_928, 1_989_430_097, 476_523_442], 1_592_576_868);
    check::<KoalaBear>(24, [723_511_737, 87_131_171, 587_052_829, 1_323_145_575], 1_815_724_394);
}

/// The example of the authors' own program.
#[test]
fn poseidon2_of_bn254_is_the_authors() {
    let expected = [
        "0bb61d24daca55eebcb1929a82650f328134334da98ea4f847f760054f4a3033",
        "303b6f7c86d043bfcbcc80214f26a30277a15d3f74ca654992defe7ff8d03570",
        "1ed25194542b12eef8617361c3ba7c52e660b145994427cc86296242cf766ec8",
    ];
    for (value, expected) in permuted::<Bn254Fr>(3).into_iter().zip(expected) {
        let hex: String = value.to_limbs().iter().rev().map(|limb| format!("{limb:08x}")).collect();
        assert_eq!(hex, expected);
    }
}

fn on_devices<F: PrimeField>(engine: &Engine, name: &str, width: usize, [rate, out]: [usize; 2]) {
    let rows = [counted::<F>(width), elements::<F>(2 * width, 7)].concat();
    let poseidon = Poseidon2::<F>::standard(width).unwrap();
    let mut expected = rows.clone();
    expected.chunks_mut(width).for_each(|row| poseidon.permute(row));
    let matrix = FieldTensor::from_shaped(engine, &rows, &[3, width]).unwrap();
    assert_eq!(matrix.poseidon2().unwrap().to_vec().unwrap(), expected, "{width} of {} on {name}", F::KIND);
    // Rows of a length that is no multiple of the rate.
    let length = 2 * rate + 1;
    let list = elements::<F>(4 * length, 9);
    let hashed =
        FieldTensor::from_shaped(engine, &list, &[4, length]).unwrap().poseidon2_hash(width, rate, out).unwrap();
    let mut level: Vec<Vec<F>> = list.chunks(length).map(|row| poseidon.absorb(row, rate, out)).collect();
    assert_eq!(hashed.to_vec().unwrap(), level.concat(), "sponge of {} on {name}", F::KIND);
    if 2 * out <= width {
        while level.len() > 1 {
            level = level.chunks(2).map(|pair| poseidon.absorb(&pair.concat(), 2 * out, out)).collect();
        }
        assert_eq!(hashed.poseidon2_root(width).unwrap(), level[0], "root of {} on {name}", F::KIND);
    }
}

#[test]
fn poseidon2_is_that_of_the_host() {
    for (name, engine) in some_engines(4) {
        on_devices::<BabyBear>(&engine, &name, 16, [8, 8]);
        on_devices::<KoalaBear>(&engine, &name, 24, [16, 8]);
        on_devices::<Bn254Fr>(&engine, &name, 3, [2, 1]);
    }
    let (_, engine) = engines().remove(0);
    let rows = FieldTensor::from_shaped(&engine, &elements::<BabyBear>(15, 1), &[1, 15]).unwrap();
    assert!(matches!(rows.poseidon2(), Err(Error::InvalidInput { .. })));
}
