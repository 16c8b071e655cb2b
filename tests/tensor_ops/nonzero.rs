//! Counts of values, and results whose size is known only once they are computed.

use cantus::DType;
use ndarray::{ArrayD, IxDyn};

use crate::{Numbers, by_turns, close, few, name, tensor};

#[test]
fn bins_and_histograms() {
    for engine in by_turns() {
        for seed in few(engine, 0..12) {
            let mut numbers = Numbers::new(700 + seed);
            let shape = [numbers.side(90), numbers.side(200)];
            let array = numbers.array(&shape);
            let bins = 1 + numbers.below(70);
            let what = format!("{bins} of {shape:?}, seed {seed}, on {}", name(engine));
            let whole = array.mapv(|x| (x * 20.0).round());
            let mut counts = vec![0.0; bins];
            whole.iter().filter(|&&x| x >= 0.0 && (x as usize) < bins).for_each(|&x| counts[x as usize] += 1.0);
            let row = |counts: Vec<f64>| ArrayD::from_shape_vec(IxDyn(&[bins]), counts).unwrap();
            close(&tensor(engine, &whole).cast(DType::I32).bincount(bins), &row(counts), 0.0, &what);
            // The edges as the definition has them.
            let (low, high) = (-2.5, 3.0);
            let edges =
                cantus::ops::linspace(engine, low, high, bins + 1, DType::F32).eval().unwrap().to_vec::<f32>().unwrap();
            let mut counts = vec![0.0; bins];
            for &x in array.iter().filter(|&&x| (low as f32..=high as f32).contains(&x)) {
                counts[(edges.partition_point(|&edge| edge <= x) - 1).min(bins - 1)] += 1.0;
            }
            close(&tensor(engine, &array).histogram(bins, low, high), &row(counts), 0.0, &what);
        }
    }
}

/// Enough numbers for several threads, few and many bins, and numbers that have none.
#[test]
fn many_numbers_in_few_and_many_bins() {
    let mut numbers = Numbers::new(41);
    let mut values: Vec<f32> = (0..300_000).map(|_| numbers.float()).collect();
    let low = -3.5_f32;
    values.extend([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, low, low.next_down(), 3.0, 3.0_f32.next_up(), -0.0]);
    for engine in by_turns() {
        let x = engine.tensor(&values).unwrap().expr();
        for bins in [1, 7, 64, 6000] {
            let edges = cantus::ops::linspace(engine, f64::from(low), 3.0, bins + 1, DType::F32);
            let edges = edges.eval().unwrap().to_vec::<f32>().unwrap();
            let mut wanted = vec![0_u32; bins];
            for &value in values.iter().filter(|&&value| low <= value && value <= 3.0) {
                wanted[(edges.partition_point(|&edge| edge <= value) - 1).min(bins - 1)] += 1;
            }
            let got = x.histogram(bins, f64::from(low), 3.0).eval().unwrap().to_vec::<u32>().unwrap();
            assert_eq!(got, wanted, "{bins} bins on {}", name(engine));
            let by = x.histogram_by(engine.tensor(&edges).unwrap(), 3.0).eval().unwrap().to_vec::<u32>().unwrap();
            assert_eq!(by, wanted, "{bins} bins by edges on {}", name(engine));
            let whole = (&x * 1000.0).cast(DType::I32).bincount(bins).eval().unwrap().to_vec::<u32>().unwrap();
            let mut wanted = vec![0_u32; bins];
            // NaN is 0 as an integer, and an infinity the largest.
            for bin in values.iter().map(|value| (value * 1000.0) as i32).filter(|bin| (0..bins as i32).contains(bin)) {
                wanted[bin as usize] += 1;
            }
            assert_eq!(whole, wanted, "bincount of {bins} on {}", name(engine));
        }
    }
}

#[test]
fn nonzero_places_and_selected_elements() {
    for engine in by_turns() {
        for seed in few(engine, 0..12) {
            let mut numbers = Numbers::new(730 + seed);
            let rank = numbers.below(4);
            let shape = numbers.shape(rank, [1, 3000, 60, 14][rank]);
            let limit = [-5.0, 0.0, 3.9, 5.0][numbers.below(4)];
            let array = numbers.array(&shape).mapv(|x| if x > limit { x } else { 0.0 });
            let what = format!("above {limit} of {shape:?}, seed {seed}, on {}", name(engine));
            let t = tensor(engine, &array).expr();
            let places: Vec<u32> = array
                .indexed_iter()
                .filter(|(_, x)| **x != 0.0)
                .flat_map(|(at, _)| (0..rank).map(|axis| at[axis] as u32).collect::<Vec<_>>())
                .collect();
            let found = t.nonzero().unwrap_or_else(|error| panic!("{what}: {error}"));
            let number = array.iter().filter(|x| **x != 0.0).count();
            assert_eq!(found.shape(), [number, rank], "{what}");
            assert_eq!(found.to_vec::<u32>().unwrap(), places, "{what}");
            let kept: Vec<f32> = array.iter().copied().filter(|&x| x > 1.0).collect();
            assert_eq!(t.masked_select(t.greater(1.0)).unwrap().to_vec::<f32>().unwrap(), kept, "{what}");
        }
    }
}

#[test]
fn distinct_elements_with_their_counts() {
    for engine in by_turns() {
        for seed in few(engine, 0..10) {
            let mut numbers = Numbers::new(760 + seed);
            let shape = [numbers.side(40), numbers.side(120)];
            let array = numbers.array(&shape).mapv(|x| (x * 10.0).round());
            let what = format!("of {shape:?}, seed {seed}, on {}", name(engine));
            let mut values: Vec<i32> = array.iter().map(|&x| x as i32).collect();
            let all = values.clone();
            values.sort_unstable();
            values.dedup();
            let unique = tensor(engine, &array).cast(DType::I32).unique().unwrap();
            assert_eq!(unique.values.to_vec::<i32>().unwrap(), values, "{what}");
            let inverse: Vec<u32> = all.iter().map(|x| values.binary_search(x).unwrap() as u32).collect();
            assert_eq!(unique.inverse.shape(), shape, "{what}");
            assert_eq!(unique.inverse.to_vec::<u32>().unwrap(), inverse, "{what}");
            let counts: Vec<u32> = values.iter().map(|x| all.iter().filter(|y| *y == x).count() as u32).collect();
            assert_eq!(unique.counts.to_vec::<u32>().unwrap(), counts, "{what}");
        }
    }
}

/// With enough elements that parts are guessed by division: edges, their neighbours, what lies outside, and NaN, against a search on the host.
#[test]
fn long_histograms_keep_to_their_edges() {
    for engine in by_turns() {
        for (bins, low, high) in [(256, 0.0, 1.0), (1000, -3.0, 7.0), (77, 100.0, 101.0)] {
            let edges = cantus::ops::linspace(engine, low, high, bins + 1, DType::F32).eval().unwrap();
            let edges = edges.to_vec::<f32>().unwrap();
            let mut values: Vec<f32> =
                edges.iter().flat_map(|&edge| [edge, edge.next_up(), edge.next_down()]).collect();
            // Devices may take subnormal numbers for 0.
            values.retain(|value| !value.is_subnormal());
            values.extend([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1e9, 1e9, -0.0]);
            let mut numbers = Numbers::new(bins as u64);
            let spread = (high - low) as f32;
            values.extend(numbers.array(&[4096]).iter().map(|x| low as f32 + spread * (x * 0.3 + 0.5)));
            let count = (1 << 22) + 3;
            let mut expected = vec![0_u32; bins];
            for place in 0..count {
                let x = values[place % values.len()];
                let part = edges.partition_point(|edge| *edge <= x);
                if x >= edges[0] && x <= edges[bins] {
                    expected[(part - 1).min(bins - 1)] += 1;
                }
            }
            let all: Vec<f32> = values.iter().copied().cycle().take(count).collect();
            let found = engine.tensor(&all).unwrap().expr().histogram(bins, low, high).eval().unwrap();
            assert_eq!(found.to_vec::<u32>().unwrap(), expected, "{}: {bins}, {low}, {high}", name(engine));
        }
    }
}
