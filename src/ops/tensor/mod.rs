//! Operations on tensors, one file each. The kernel of one is the frame of the same name in `shaders/tensor`.

mod assemble;
mod conv2d;
mod create;
mod cumsum;
mod gather;
mod images;
mod layer_norm;
mod matmul;
mod pool2d;
mod random;
mod reduce;
mod rms_norm;
mod rows;
mod softmax;

pub use create::{arange, eye, full, linspace};
pub use images::Window;
pub use random::{rand, randn, random_bits};
