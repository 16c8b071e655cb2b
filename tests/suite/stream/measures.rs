//! Sums, extremes, moments, histograms, sorting, products and coherence of streams, beside oracles.

use cantus::stream::{self, Bytes, Npy, Stream};
use cantus::{DType, Element, Engine};
use cantus_verify::inputs::Random;
use kit::engine::{by_turns, name};

use super::{Kept, between};

fn bytes<T: Element>(values: &[T], row: &[usize]) -> Bytes<Vec<u8>> {
    Bytes::new(bytemuck::cast_slice(values).to_vec(), T::DTYPE, row).unwrap()
}

/// Count, sum, mean, variance, least, greatest in float64, sums of whole numbers exactly.
fn check<T: Element + Copy>(engine: &Engine, values: &[T], row: &[usize], to: impl Fn(T) -> f64, whole: Option<i128>) {
    // A driver compiles a summary's kernels for seconds: it takes types by turns.
    if !kit::turn::seeds(engine, 0..32).any(|number| number == T::DTYPE as u64) {
        return;
    }
    let x: Vec<f64> = values.iter().map(|&value| to(value)).collect();
    let summary = match Stream::new(engine, bytes(values, row))
        .chunk_rows(values.len() / 7 / row.iter().product::<usize>() + 1)
        .summary()
    {
        Ok(summary) => summary,
        // A device without the type says so.
        Err(error) => {
            let named = [T::DTYPE.name(), "int64", "float64"].iter().any(|name| error.to_string().contains(name));
            assert!(named && T::DTYPE.bytes() == 8 && engine.selected().device.backend != "cpu", "{error}");
            return;
        }
    };
    let what = format!("{}: {}", name(engine), T::DTYPE);
    let count = x.len() as f64;
    let mean = x.iter().sum::<f64>() / count;
    let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
    assert_eq!(summary.count, x.len() as u64, "{what}");
    match whole {
        Some(whole) => assert_eq!(summary.sum, whole as f64, "{what}"),
        None => {
            let magnitude = x.iter().map(|x| x.abs()).sum::<f64>();
            assert!((summary.sum - x.iter().sum::<f64>()).abs() <= 1e-6 * magnitude, "{what}: {summary:?}");
        }
    }
    assert!(
        (summary.mean - mean).abs() <= 1e-6 * x.iter().map(|x| x.abs()).sum::<f64>() / count,
        "{what}: {summary:?}, mean {mean}"
    );
    assert!((summary.variance / variance - 1.0).abs() < 1e-5, "{what}: {summary:?}, variance {variance}");
    assert_eq!(summary.min, x.iter().copied().fold(f64::INFINITY, f64::min), "{what}");
    assert_eq!(summary.max, x.iter().copied().fold(f64::NEG_INFINITY, f64::max), "{what}");
}

#[test]
fn summaries_of_every_type() {
    for engine in by_turns() {
        let mut random = Random::new(21);
        let count = 3 * 9973;
        let mut words = || (0..count).map(|_| random.u32()).collect::<Vec<u32>>();
        let w = words();
        let high = words();
        let sum = |values: &mut dyn Iterator<Item = i128>| Some(values.sum::<i128>());
        check(engine, &w, &[3], f64::from, sum(&mut w.iter().map(|&x| x.into())));
        let i: Vec<i32> = w.iter().map(|&x| x as i32).collect();
        check(engine, &i, &[3], f64::from, sum(&mut i.iter().map(|&x| x.into())));
        let u8s: Vec<u8> = w.iter().map(|&x| x as u8).collect();
        check(engine, &u8s, &[3], f64::from, sum(&mut u8s.iter().map(|&x| x.into())));
        let i16s: Vec<i16> = w.iter().map(|&x| x as i16).collect();
        check(engine, &i16s, &[3], f64::from, sum(&mut i16s.iter().map(|&x| x.into())));
        let bools: Vec<bool> = w.iter().map(|&x| x & 1 == 1).collect();
        check(engine, &bools, &[3], |x| f64::from(u8::from(x)), sum(&mut bools.iter().map(|&x| i128::from(x))));
        let f: Vec<f32> = w.iter().map(|&x| x as f32 / 1e9 - 1.0).collect();
        check(engine, &f, &[3], f64::from, None);
        let halves: Vec<half::f16> = f.iter().map(|&x| half::f16::from_f32(x)).collect();
        check(engine, &halves, &[3], f64::from, None);
        let d: Vec<f64> = f.iter().map(|&x| f64::from(x) * 1e100).collect();
        check(engine, &d, &[3], |x| x, None);
        let long: Vec<i64> = w.iter().zip(&high).map(|(&low, &high)| i64::from(low) | i64::from(high) << 32).collect();
        check(engine, &long, &[3], |x| x as f64, sum(&mut long.iter().map(|&x| x.into())));
        let unsigned: Vec<u64> = long.iter().map(|x| x.cast_unsigned()).collect();
        check(engine, &unsigned, &[3], |x| x as f64, sum(&mut unsigned.iter().map(|&x| x.into())));
    }
}

#[test]
fn a_large_mean_leaves_the_variance() {
    for engine in by_turns() {
        let values: Vec<f32> = (0..100_000).map(|place| 10_000.0 + (place % 10) as f32).collect();
        let summary = Stream::new(engine, bytes(&values, &[])).chunk_rows(999).summary().unwrap();
        assert!((summary.variance - 8.25).abs() < 1e-3, "{}: {summary:?}", name(engine));
    }
}

#[test]
fn nan_and_infinity_are_seen() {
    for engine in by_turns() {
        for place in [0, 500, 999] {
            let mut values = vec![1.0_f32; 1000];
            values[place] = f32::INFINITY;
            let of = |values: &[f32]| Stream::new(engine, bytes(values, &[])).chunk_rows(100);
            assert_eq!(of(&values).sum().unwrap(), f64::INFINITY, "{}", name(engine));
            assert_eq!(of(&values).max().unwrap(), f64::INFINITY);
            assert_eq!(of(&values).min().unwrap(), 1.0);
            values[place] = f32::NAN;
            assert!(of(&values).sum().unwrap().is_nan() && of(&values).mean().unwrap().is_nan(), "{}", name(engine));
            assert!(of(&values).min().unwrap().is_nan() && of(&values).max().unwrap().is_nan(), "{}", name(engine));
        }
    }
}

#[test]
fn a_histogram_counts_all() {
    for engine in by_turns() {
        let mut random = Random::new(23);
        let values: Vec<f32> = (0..50_000).map(|_| (random.below(1200) as f32) / 8.0 - 10.0).collect();
        let found = Stream::new(engine, bytes(&values, &[5])).chunk_rows(777).histogram(16, 0.0, 128.0).unwrap();
        let mut expected = vec![0_u64; 16];
        for value in values {
            if (0.0..=128.0).contains(&value) {
                expected[((value / 8.0) as usize).min(15)] += 1;
            }
        }
        assert_eq!(found, expected, "{}", name(engine));
    }
}

#[test]
fn sorting_takes_every_type_and_puts_nan_last() {
    let folder = tempfile::tempdir().unwrap();
    let sorted = |engine: &Engine, source: Bytes<Vec<u8>>| {
        let kept = Kept::default();
        Stream::new(engine, source).chunk_rows(771).sort(folder.path(), kept.sink()).unwrap();
        kept
    };
    for engine in by_turns() {
        let mut random = Random::new(24);
        let words: Vec<u32> = (0..20_001).map(|_| random.u32()).collect();
        let mut expected = words.clone();
        expected.sort_unstable();
        assert_eq!(sorted(engine, bytes(&words, &[])).values::<u32>(), expected, "{}", name(engine));
        let integers: Vec<i32> = words.iter().map(|&word| word as i32 >> 12).collect();
        let mut expected = integers.clone();
        expected.sort_unstable();
        assert_eq!(sorted(engine, bytes(&integers, &[])).values::<i32>(), expected, "{}", name(engine));
        // All kinds of floats: NaN, infinities, zeros of both signs, subnormal ones.
        let floats: Vec<f32> =
            words.iter().map(|&word| f32::from_bits(if word % 5 == 0 { word & 0xff80_0000 } else { word })).collect();
        let mut expected = floats.clone();
        expected.sort_by(|a, b| a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())));
        let found = sorted(engine, bytes(&floats, &[])).values::<f32>();
        let same = found.iter().zip(&expected).all(|(a, b)| a == b || a.is_nan() && b.is_nan() || kit_flushes(*a, *b));
        assert!(same && found.len() == expected.len(), "{}", name(engine));
        let bytes_of: Vec<u8> = words.iter().map(|&word| word as u8).collect();
        let mut expected = bytes_of.clone();
        expected.sort_unstable();
        assert_eq!(sorted(engine, bytes(&bytes_of, &[])).values::<u8>(), expected, "{}", name(engine));
    }
    let cpu = Engine::builder().backend("cpu").build().unwrap();
    let mut random = Random::new(25);
    let long: Vec<i64> =
        (0..5000).map(|_| (i64::from(random.u32()) << 32 | i64::from(random.u32())) >> (random.u32() % 60)).collect();
    let mut expected = long.clone();
    expected.sort_unstable();
    assert_eq!(sorted(&cpu, bytes(&long, &[])).values::<i64>(), expected);
    let doubles: Vec<f64> =
        long.iter().map(|&long| f64::from_bits(long.cast_unsigned())).filter(|x| !x.is_nan()).collect();
    let mut expected = doubles.clone();
    expected.sort_by(|a, b| a.partial_cmp(b).unwrap());
    assert_eq!(sorted(&cpu, bytes(&doubles, &[])).values::<f64>(), expected);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "runs were left");
}

/// A device may make zeros of subnormal numbers.
fn kit_flushes(a: f32, b: f32) -> bool {
    (a == 0.0 || a.is_subnormal()) && (b == 0.0 || b.is_subnormal())
}

#[test]
fn products_of_panels_are_those_of_the_whole() {
    for engine in by_turns() {
        let mut random = Random::new(26);
        for (m, k, n, memory) in
            [(1, 1, 1, 1 << 20), (70, 300, 90, 20_000), (33, 64, 128, 1 << 20), (50, 2000, 10, 40_000)]
        {
            let a: Vec<f32> = (0..m * k).map(|_| between(&mut random, -1.0, 1.0)).collect();
            let b: Vec<f32> = (0..k * n).map(|_| between(&mut random, -1.0, 1.0)).collect();
            let kept = Kept::default();
            let mut last = 0;
            stream::matmul(engine, bytes(&a, &[k]), bytes(&b, &[n]), Some(memory), kept.sink(), |progress| {
                assert!(progress.rows > last && progress.of == Some(m as u64));
                last = progress.rows;
            })
            .unwrap();
            assert_eq!(last, m as u64);
            let found = kept.values::<f32>();
            assert_eq!(found.len(), m * n);
            for (place, found) in found.into_iter().enumerate() {
                let (row, column) = (place / n, place % n);
                let expected: f64 = (0..k).map(|i| f64::from(a[row * k + i]) * f64::from(b[i * n + column])).sum();
                let close = (f64::from(found) - expected).abs() < 1e-5 * (k as f64).sqrt() + 1e-6;
                assert!(close, "{}: {m} x {k} x {n} at {row}, {column}: {found} for {expected}", name(engine));
            }
        }
    }
}

/// By its definition, in float64.
fn coherence(values: &[f64], width: usize) -> f64 {
    let (count, phi) = (values.len() as f64, f64::midpoint(1.0, 5.0_f64.sqrt()));
    let mean = values.iter().sum::<f64>() / count;
    let deviation = (values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count).sqrt();
    let z: Vec<f64> = values.iter().map(|x| (x - mean) / deviation).collect();
    let mut sum = 0.0;
    for j in 1..values.len() / width {
        for i in 1..width {
            let (here, above, left) = (z[j * width + i], z[(j - 1) * width + i], z[j * width + i - 1]);
            sum += (phi * here * above + phi * here * left).abs() / phi;
        }
    }
    (sum / count).min(1.0)
}

#[test]
fn coherence_of_fields_of_any_scale_and_offset() {
    let seed = 20_261_125;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    // Squares that float32 holds, that overflow, and that vanish; a common offset; a first value far from all others.
    let kinds = [(1.0, 0.0, None), (1e30, 0.0, None), (1e-30, 0.0, None), (1.0, 1e5, None), (1e-3, -50.0, Some(1e4))];
    for (number, (scale, offset, first)) in kinds.into_iter().cycle().take(15).enumerate() {
        let (width, height) = (2 + random.below(300) as usize, 2 + random.below(200) as usize);
        let mut values: Vec<f32> = (0..width * height)
            .map(|place| {
                let wave = ((place / width) as f32 * 0.1).sin() + ((place % width) as f32 * 0.07).cos();
                (wave + between(&mut random, -0.5, 0.5)) * scale + offset
            })
            .collect();
        if let Some(first) = first {
            values[0] = first;
        }
        let wide: Vec<f64> = values.iter().map(|&x| f64::from(x)).collect();
        let expected = coherence(&wide, width);
        for engine in by_turns() {
            let field = engine.tensor_from(&values, &[height, width]).unwrap();
            let found = f64::from(cantus::ops::coherence(engine, &field).unwrap());
            let what = format!("{number}: {width} x {height}, scale {scale}, offset {offset}");
            assert!((found - expected).abs() < 2e-5, "{}: {found} for {expected}, {what}", name(engine));
        }
    }
}

#[test]
fn coherence_of_sheets_of_different_scales() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("field.npy");
    let (width, height) = (64, 96);
    let mut random = Random::new(31);
    // Sheets that are constant, tiny, and large.
    let scale = |row: usize| [0.0, 1e-25, 1e20][row / 32];
    let mut values: Vec<f32> =
        (0..width * height).map(|place| between(&mut random, -1.0, 1.0) * scale(place / width)).collect();
    let write = |values: &[f32]| {
        cantus::tensor::npy::write(&path, DType::F32, &[height, width], bytemuck::cast_slice(values)).unwrap();
    };
    let wide: Vec<f64> = values.iter().map(|&x| f64::from(x)).collect();
    let expected = coherence(&wide, width);
    let memory = Some(width as u64 * 4 * 12 * 8);
    for engine in by_turns() {
        write(&values);
        let found = stream::coherence(engine, Npy::open(&path).unwrap(), memory, |_| {}).unwrap();
        assert!((f64::from(found) - expected).abs() < 2e-5, "{}: {found} for {expected}", name(engine));
    }
    // The last sheet alone is at fault.
    let last = values.len() - 1;
    values[last] = f32::NAN;
    write(&values);
    for engine in by_turns() {
        let refused = stream::coherence(engine, Npy::open(&path).unwrap(), memory, |_| {}).unwrap_err().to_string();
        assert!(refused.contains("NaN or infinity"), "{}: {refused}", name(engine));
        let apart = engine.tensor_from(&[3e38_f32, -3e38, 3e38, -3e38], &[2, 2]).unwrap();
        let refused = cantus::ops::coherence(engine, &apart).unwrap_err().to_string();
        assert!(refused.contains("differ by more than float32"), "{}: {refused}", name(engine));
    }
}

#[test]
fn coherence_of_a_stream_is_that_of_the_field() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("field.npy");
    for engine in by_turns() {
        for (width, height) in [(200, 100), (3, 1000), (1, 50), (50, 1), (257, 33)] {
            let mut random = Random::new(27);
            let values: Vec<f32> = (0..width * height)
                .map(|place| {
                    ((place / width) as f32 * 0.03).sin()
                        + (place % width) as f32 * 0.01
                        + between(&mut random, 0.0, 1.0)
                })
                .collect();
            cantus::tensor::npy::write(&path, DType::F32, &[height, width], bytemuck::cast_slice(&values)).unwrap();
            // Twelve chunks of a few rows each.
            let memory = Some(width as u64 * 4 * 12 * 7);
            let mut last = 0;
            let found = stream::coherence(engine, Npy::open(&path).unwrap(), memory, |progress| {
                assert!(progress.rows > last);
                last = progress.rows;
            });
            let wide: Vec<f64> = values.iter().map(|&x| f64::from(x)).collect();
            let expected = if width == 1 || height == 1 { 0.0 } else { coherence(&wide, width) };
            let found = f64::from(found.unwrap());
            assert!((found - expected).abs() < 2e-5, "{}: {found} for {expected}, {width} x {height}", name(engine));
        }
    }
}
