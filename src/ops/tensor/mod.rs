//! Operations on tensors, one file each. The kernel of one is the frame of the same name in `shaders/tensor`.

mod arrange;
mod assemble;
mod bincount;
mod conv2d;
mod create;
mod gather;
mod grid_sample;
mod im2col;
mod images;
mod interpolate;
mod layer_norm;
mod matmul;
mod nonzero;
mod pad;
mod pool2d;
mod quantile;
mod random;
mod reduce;
mod rms_norm;
mod rows;
mod scan;
mod scatter;
mod searchsorted;
mod softmax;
mod sort;
mod summary;

pub use arrange::meshgrid;
pub use create::{arange, eye, full, linspace};
pub use images::Window;
pub use interpolate::Interpolation;
pub use nonzero::Unique;
pub use pad::Padding;
pub use random::{rand, randn, random_bits};
