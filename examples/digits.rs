//! A small network that reads handwritten digits, trained elsewhere (`examples/digits/train.py`): two convolutions, two layers, on whatever
//! device there is.
//!
//! cargo run --release --example digits

use std::path::Path;

use cantus::ops::Window;
use cantus::{Engine, Result, Tensor};

/// The weights, as PyTorch names and shapes them.
pub struct Network {
    conv1: [Tensor; 2],
    conv2: [Tensor; 2],
    norm: [Tensor; 2],
    linear1: [Tensor; 2],
    linear2: [Tensor; 2],
}

impl Network {
    /// Reads the weights from a folder of .npy files.
    ///
    /// # Errors
    /// A file that is missing or not in the format.
    pub fn load(engine: &Engine, folder: &Path) -> Result<Self> {
        let pair = |layer: &str| -> Result<[Tensor; 2]> {
            let file = |part: &str| Tensor::from_npy(engine, folder.join(format!("{layer}_{part}.npy")));
            Ok([file("weight")?, file("bias")?])
        };
        Ok(Self {
            conv1: pair("conv1")?,
            conv2: pair("conv2")?,
            norm: pair("norm")?,
            linear1: pair("linear1")?,
            linear2: pair("linear2")?,
        })
    }

    /// The most likely digit of each image, of images (N, 1, 8, 8) with values from 0 to 1.
    ///
    /// # Errors
    /// What the engine answers.
    pub fn read(&self, images: &Tensor) -> Result<Vec<u32>> {
        let channels = |bias: &Tensor| bias.reshape(&[bias.len(), 1, 1]);
        let same = Window::default().padded(1);
        let [weight, bias] = &self.conv1;
        let x = (images.conv2d(weight, same, 1) + channels(bias)).relu().max_pool2d([2, 2], Window::strided(2));
        let [weight, bias] = &self.conv2;
        let x = (x.conv2d(weight, same, 1) + channels(bias)).relu().max_pool2d([2, 2], Window::strided(2));
        let [gain, shift] = &self.norm;
        let x = x.reshape(&[images.shape()[0], 128]).layer_norm(gain, shift, 1e-5);
        let [weight, bias] = &self.linear1;
        let x = (x.matmul(weight.transpose()) + bias).gelu();
        let [weight, bias] = &self.linear2;
        let logits = x.matmul(weight.transpose()) + bias;
        logits.argmax(Some(-1), false).eval()?.to_vec()
    }
}

/// Returns the folder of this example's data.
#[must_use]
pub fn folder() -> &'static Path {
    // The tests take this file into a package one folder down.
    let here = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/digits"));
    if here.is_dir() { here } else { Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/digits")) }
}

#[allow(dead_code, reason = "the tests take the network alone")]
fn main() -> Result<()> {
    let engine = Engine::new()?;
    let network = Network::load(&engine, folder())?;
    let images = Tensor::from_npy(&engine, folder().join("images.npy"))?;
    let labels = Tensor::from_npy(&engine, folder().join("labels.npy"))?.to_vec::<i32>()?;
    let start = std::time::Instant::now();
    let read = network.read(&images)?;
    let right = read.iter().zip(&labels).filter(|(read, label)| i64::from(**read) == i64::from(**label)).count();
    println!(
        "{right} of {} digits read right, on {} in {:.1?}",
        labels.len(),
        engine.selected().device.name,
        start.elapsed()
    );
    let pixels = images.to_vec::<f32>()?;
    for row in 0..8 {
        let line = |image: usize| {
            pixels[image * 64 + row * 8..][..8].iter().map(|&ink| [' ', '.', 'o', '#'][(ink * 3.0) as usize])
        };
        println!("{}", (0..8).map(|image| line(image).collect::<String>()).collect::<Vec<_>>().join("  "));
    }
    println!("{}", read.iter().take(8).map(|digit| format!("   {digit}    ")).collect::<Vec<_>>().join("  "));
    Ok(())
}
