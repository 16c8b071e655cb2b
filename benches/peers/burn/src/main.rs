//! Operations of `cantus bench` by Burn (CubeCL) on wgpu's Vulkan: a peer of the benches.
//!
//! Reads "NAME SIDE SECONDS", repeats the operation for those seconds, and answers with the seconds that each call took until the device had done its work;
//! with nothing where it has no such operation. What it compiles and tunes for itself happens in a call that does not count.

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use burn::tensor::ops::{AttentionModuleOptions, ConvOptions, MaxPoolOptions};
use burn::tensor::wgpu::WgpuBackend;
use burn::tensor::{Device, Distribution, Int, Tensor, activation, module};

type Work = Box<dyn Fn()>;

fn uniform<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::random(shape, Distribution::Uniform(0.0, 1.0), device)
}

/// The operation over squares of side n.
fn prepare(name: &str, n: usize, device: &Device) -> Option<Work> {
    let (x, y, row) = (uniform([n, n], device), uniform([n, n], device), uniform([1, n], device));
    Some(match name {
        "add" => Box::new(move || drop(x.clone() + y.clone())),
        "add_row" => Box::new(move || drop(x.clone() + row.clone())),
        "silu" => Box::new(move || drop(activation::silu(x.clone()))),
        "gelu" => Box::new(move || drop(activation::gelu(x.clone()))),
        "softmax" => Box::new(move || drop(activation::softmax(x.clone(), 1))),
        "reduce_rows" => Box::new(move || drop(x.clone().sum())),
        "reduce_columns" => Box::new(move || drop(x.clone().sum_dim(0))),
        "cumsum" => Box::new(move || drop(x.clone().cumsum(1))),
        "argmax" => Box::new(move || drop(x.clone().argmax(1))),
        "sort" => Box::new(move || drop(x.clone().sort(1))),
        "topk" => Box::new(move || drop(x.clone().topk(8, 1))),
        "concat" => Box::new(move || drop(Tensor::cat(vec![x.clone(), y.clone()], 0))),
        "matmul" => Box::new(move || drop(x.clone().matmul(y.clone()))),
        "random" => {
            let device = device.clone();
            Box::new(move || drop(uniform([n, n], &device)))
        }
        "gather" => {
            let index: Tensor<2, Int> = (y * n as f32).int();
            Box::new(move || drop(x.clone().gather(0, index.clone())))
        }
        "bmm" => {
            let (a, b) = (uniform([64, n, n], device), uniform([64, n, n], device));
            Box::new(move || drop(a.clone().matmul(b.clone())))
        }
        "conv2d" => {
            let (image, weight) = (uniform([1, 16, n, n], device), uniform([16, 16, 3, 3], device));
            Box::new(move || {
                let options = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
                drop(module::conv2d(image.clone(), weight.clone(), None, options));
            })
        }
        "pool2d" => {
            let image = uniform([1, 1, n, n], device);
            Box::new(move || drop(module::max_pool2d(image.clone(), MaxPoolOptions::new([2, 2]))))
        }
        "attention" => {
            let [q, k, v] = std::array::from_fn(|_| uniform([1, 8, n, 64], device));
            Box::new(move || {
                let options = AttentionModuleOptions { is_causal: true, ..Default::default() };
                drop(module::attention(q.clone(), k.clone(), v.clone(), None, None, options));
            })
        }
        _ => return None,
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::wgpu_options().graphics_api(WgpuBackend::Vulkan).init()?;
    println!("Burn 0.22 on {device:?}");
    let mut known: Option<(String, Option<Work>)> = None;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, side, seconds] = words[..] else { return Err("a request is NAME SIDE SECONDS".into()) };
        let key = format!("{name} {side}");
        let fresh = known.as_ref().is_none_or(|(made, _)| *made != key);
        if fresh {
            known = Some((key, prepare(name, side.parse()?, &device)));
        }
        let mut times: Vec<String> = Vec::new();
        if let Some((_, Some(work))) = &known {
            for _ in 0..if fresh { 3 } else { 1 } {
                work();
                device.sync()?;
            }
            let (begin, limit) = (Instant::now(), Duration::from_secs_f64(seconds.parse()?));
            while times.len() < 3 || begin.elapsed() < limit {
                let start = Instant::now();
                work();
                device.sync()?;
                times.push(start.elapsed().as_secs_f64().to_string());
            }
        }
        println!("{}", times.join(" "));
        std::io::stdout().flush()?;
    }
    Ok(())
}
