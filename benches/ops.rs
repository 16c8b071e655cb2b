//! The shipped operations on the CPU backend over a few sizes, with criterion's statistics and saved baselines: for finding
//! regressions between two versions. It has no peer; for that see `field` and `small_dispatch`.
//!
//! `cargo bench -p cantus-benches --bench ops -- --save-baseline before`, then `-- --baseline before`

#![allow(clippy::expect_used, reason = "a bench that cannot run stops")]
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use cantus::ops::{self, field::FieldParams};
use cantus::{Config, Engine, Fallback};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn shipped(criterion: &mut Criterion) {
    let builder = Engine::builder().config(Config::default()).backend("cpu").fallback(Fallback::Never);
    let engine = builder.build().expect("the CPU is always there");
    for side in [64_usize, 512, 2048] {
        let mut group = criterion.benchmark_group(format!("{side}x{side}"));
        group.throughput(Throughput::Elements((side * side) as u64));
        let params = FieldParams::new(side, side);
        group.bench_function(BenchmarkId::from_parameter("field"), |bencher| {
            bencher.iter(|| {
                let field = ops::field::field(&engine, &params).expect("computes");
                engine.finish().expect("finishes");
                field
            });
        });
        group.bench_function(BenchmarkId::from_parameter("phi_pattern"), |bencher| {
            bencher.iter(|| {
                let pattern = ops::field::phi_pattern(&engine, side, side).expect("computes");
                engine.finish().expect("finishes");
                pattern
            });
        });
        let field = ops::field::field(&engine, &params).expect("computes");
        group.bench_function(BenchmarkId::from_parameter("coherence"), |bencher| {
            bencher.iter(|| ops::coherence(&engine, &field).expect("computes"));
        });
        group.finish();
    }
}

criterion_group!(benches, shipped);
criterion_main!(benches);
