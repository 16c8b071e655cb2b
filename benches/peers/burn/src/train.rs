//! Trains a small convolutional network by Burn, on whichever wgpu device there is: `train-burn FOLDER`.
//!
//! Pictures of 16 x 16 show one of four figures with noise. FOLDER gets the losses of the steps, and what the network says of pictures that it has not seen;
//! they should come close to those of another device. The last line is the share that it names rightly.

use std::path::PathBuf;
use std::time::Instant;

use burn::module::{Module, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{Linear, LinearConfig, PaddingConfig2d};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::wgpu::WgpuBackend;
use burn::tensor::{Device, Int, Tensor, TensorData, activation};

const SIDE: usize = 16;
const BATCH: usize = 64;
const STEPS: usize = 60;
const FIGURES: usize = 4;

#[derive(Module, Debug)]
struct Network {
    first: Conv2d,
    second: Conv2d,
    pool: MaxPool2d,
    last: Linear,
}

impl Network {
    fn new(device: &Device) -> Self {
        let mut random = Random(7);
        let mut convolution = |channels: [usize; 2]| {
            let config = Conv2dConfig::new(channels, [3, 3]).with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1));
            let mut layer = config.with_bias(false).init(device);
            layer.weight = given(layer.weight, (3.0 / (9 * channels[0]) as f32).sqrt(), &mut random);
            layer
        };
        let (first, second) = (convolution([1, 8]), convolution([8, 16]));
        let inputs = 16 * (SIDE / 4) * (SIDE / 4);
        let mut last = LinearConfig::new(inputs, FIGURES).with_bias(false).init(device);
        last.weight = given(last.weight, (3.0 / inputs as f32).sqrt(), &mut random);
        Self { first, second, pool: MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init(), last }
    }

    fn forward(&self, pictures: Tensor<4>) -> Tensor<2> {
        let seen = self.pool.forward(activation::relu(self.first.forward(pictures)));
        let seen = self.pool.forward(activation::relu(self.second.forward(seen)));
        self.last.forward(seen.flatten(1, 3))
    }
}

/// SplitMix64, as numbers in 0 to 1.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1 << 24) as f32
    }
}

/// A parameter with numbers of our own: those of a device's generator depend on the size of its subgroups.
fn given<const D: usize>(parameter: Param<Tensor<D>>, bound: f32, random: &mut Random) -> Param<Tensor<D>> {
    parameter.map(|old| {
        let shape = old.dims();
        let numbers: Vec<f32> = (0..shape.iter().product()).map(|_| bound * (2.0 * random.next() - 1.0)).collect();
        Tensor::from_data(TensorData::new(numbers, shape), &old.device()).require_grad()
    })
}

/// Pictures of a disc, a square, a cross and a frame, somewhere, with noise.
fn batch(random: &mut Random, device: &Device) -> (Tensor<4>, Vec<i32>) {
    let (mut pixels, mut figures) = (Vec::new(), Vec::new());
    for _ in 0..BATCH {
        let figure = (random.next() * FIGURES as f32) as i32;
        let [cx, cy] = [0, 1].map(|_| 5.0 + 6.0 * random.next());
        let radius = 3.0 + 2.0 * random.next();
        for y in 0..SIDE {
            for x in 0..SIDE {
                let (dx, dy) = ((x as f32 - cx).abs(), (y as f32 - cy).abs());
                let (near, far) = (dx.min(dy), dx.max(dy));
                let inside = match figure {
                    0 => dx * dx + dy * dy <= radius * radius,
                    1 => far <= radius * 0.9,
                    2 => near <= 1.0 && far <= radius,
                    _ => far <= radius && far > radius - 1.5,
                };
                pixels.push(f32::from(u8::from(inside)) + 0.6 * (random.next() - 0.5));
            }
        }
        figures.push(figure);
    }
    (Tensor::from_data(TensorData::new(pixels, [BATCH, 1, SIDE, SIDE]), device), figures)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("the argument is a folder")?);
    let begin = Instant::now();
    let plain = Device::wgpu_options().graphics_api(WgpuBackend::Vulkan).init()?;
    let device = plain.autodiff();
    let (mut network, mut optimizer) = (Network::new(&device), AdamConfig::new().init());
    let loss = CrossEntropyLossConfig::new().init(&device);
    let (mut random, mut losses) = (Random(1), Vec::new());
    for _ in 0..STEPS {
        let (pictures, figures) = batch(&mut random, &device);
        let figures = Tensor::<1, Int>::from_data(TensorData::new(figures, [BATCH]), &device);
        let step = loss.forward(network.forward(pictures), figures);
        losses.push(step.clone().into_scalar::<f32>());
        let gradients = GradientsParams::from_grads(step.backward(), &network);
        network = optimizer.step(0.01, network, gradients);
    }
    let (pictures, figures) = batch(&mut Random(2), &device);
    let said: Vec<f32> = network.forward(pictures).into_data().try_to_vec()?;
    let right = said.chunks(FIGURES).zip(&figures).filter(|(said, figure)| {
        said.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).is_some_and(|(place, _)| place as i32 == **figure)
    });
    println!("{:.1} s, {} of {BATCH} named rightly", begin.elapsed().as_secs_f64(), right.count());
    for (name, numbers) in [("losses", losses), ("said", said)] {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        std::fs::write(folder.join(format!("{name}.f32")), bytes)?;
    }
    Ok(())
}
