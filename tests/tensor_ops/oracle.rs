//! Plain float64 definitions.

use ndarray::{ArrayD, Axis, IxDyn, Zip};

/// Reduces axes by a function of all values in their order.
pub(crate) fn reduce(x: &ArrayD<f64>, axes: &[usize], keep: bool, f: impl Fn(&[f64]) -> f64) -> ArrayD<f64> {
    let rank = x.ndim();
    let stays: Vec<usize> = (0..rank).filter(|axis| !axes.contains(axis)).collect();
    let order: Vec<usize> = stays.iter().chain(axes).copied().collect();
    let turned = x.view().permuted_axes(IxDyn(&order)).as_standard_layout().into_owned();
    let length: usize = axes.iter().map(|&axis| x.shape()[axis]).product();
    let outer: Vec<usize> = stays.iter().map(|&axis| x.shape()[axis]).collect();
    let values = turned.into_raw_vec_and_offset().0;
    let count: usize = outer.iter().product();
    let results: Vec<f64> = (0..count).map(|row| f(&values[row * length..(row + 1) * length])).collect();
    let shape: Vec<usize> = if keep {
        (0..rank).map(|axis| if axes.contains(&axis) { 1 } else { x.shape()[axis] }).collect()
    } else {
        outer
    };
    ArrayD::from_shape_vec(IxDyn(&shape), results).unwrap()
}

/// Maps every row along an axis.
pub(crate) fn rows(x: &ArrayD<f64>, axis: usize, f: impl Fn(&[f64]) -> Vec<f64>) -> ArrayD<f64> {
    let mut result = x.clone();
    if x.is_empty() {
        return result;
    }
    Zip::from(result.lanes_mut(Axis(axis))).and(x.lanes(Axis(axis))).for_each(|mut to, from| {
        for (to, value) in to.iter_mut().zip(f(&from.to_vec())) {
            *to = value;
        }
    });
    result
}

pub(crate) fn softmax(row: &[f64]) -> Vec<f64> {
    let greatest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = row.iter().map(|x| (x - greatest).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|power| power / sum).collect()
}

/// The matrix product in the last two axes; batches are equal.
pub(crate) fn matmul(a: &ArrayD<f64>, b: &ArrayD<f64>) -> ArrayD<f64> {
    let (x, y) = (a.ndim(), b.ndim());
    let (m, k, n) = (a.shape()[x - 2], a.shape()[x - 1], b.shape()[y - 1]);
    let mut batch = a.shape()[..x - 2].to_vec();
    if y > x {
        batch = b.shape()[..y - 2].to_vec();
    }
    let with = |sides: [usize; 2]| batch.iter().copied().chain(sides).collect::<Vec<_>>();
    let count: usize = batch.iter().product();
    let a = a.broadcast(IxDyn(&with([m, k]))).unwrap().as_standard_layout().into_owned().into_raw_vec_and_offset().0;
    let b = b.broadcast(IxDyn(&with([k, n]))).unwrap().as_standard_layout().into_owned().into_raw_vec_and_offset().0;
    let mut c = vec![0.0; count * m * n];
    for at in 0..count {
        for i in 0..m {
            for j in 0..n {
                c[(at * m + i) * n + j] = (0..k).map(|l| a[(at * m + i) * k + l] * b[(at * k + l) * n + j]).sum();
            }
        }
    }
    ArrayD::from_shape_vec(IxDyn(&with([m, n])), c).unwrap()
}

/// The geometry of a window of two axes: size, stride, padding, dilation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taps {
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: [usize; 2],
    pub(crate) padding: [usize; 2],
    pub(crate) dilation: [usize; 2],
}

impl Taps {
    pub(crate) fn output(&self, input: [usize; 2]) -> [usize; 2] {
        [0, 1].map(|axis| {
            (input[axis] + 2 * self.padding[axis] - self.dilation[axis] * (self.kernel[axis] - 1) - 1)
                / self.stride[axis]
                + 1
        })
    }

    /// Returns the place of tap `at` of output `to` on an axis, if it is within the image.
    pub(crate) fn from(&self, axis: usize, to: usize, at: usize, length: usize) -> Option<usize> {
        let place = (to * self.stride[axis] + at * self.dilation[axis]).checked_sub(self.padding[axis])?;
        (place < length).then_some(place)
    }
}

/// A convolution of images, tap by tap: each weight times the rows that it meets.
pub(crate) fn conv2d(x: &ArrayD<f64>, w: &ArrayD<f64>, taps: Taps, groups: usize) -> ArrayD<f64> {
    let (n, channels, h, width) = (x.shape()[0], x.shape()[1], x.shape()[2], x.shape()[3]);
    let (outputs, inputs) = (w.shape()[0], w.shape()[1]);
    let [oh, ow] = taps.output([h, width]);
    let (x, w) = (x.as_standard_layout(), w.as_standard_layout());
    let (x, w) = (x.as_slice().unwrap(), w.as_slice().unwrap());
    let mut sums = vec![0.0; n * outputs * oh * ow];
    for (number, plane) in sums.chunks_exact_mut((oh * ow).max(1)).enumerate() {
        let (image, output) = (number / outputs, number % outputs);
        let first = image * channels + output / (outputs / groups) * inputs;
        let weights = &w[output * inputs * taps.kernel[0] * taps.kernel[1]..];
        for c in 0..inputs {
            for i in 0..taps.kernel[0] {
                for j in 0..taps.kernel[1] {
                    let weight = weights[(c * taps.kernel[0] + i) * taps.kernel[1] + j];
                    for (row, sums) in plane.chunks_exact_mut(ow).enumerate() {
                        let Some(y) = taps.from(0, row, i, h) else { continue };
                        let line = &x[((first + c) * h + y) * width..][..width];
                        for (column, sum) in sums.iter_mut().enumerate() {
                            if let Some(z) = taps.from(1, column, j, width) {
                                *sum += line[z] * weight;
                            }
                        }
                    }
                }
            }
        }
    }
    ArrayD::from_shape_vec(IxDyn(&[n, outputs, oh, ow]), sums).unwrap()
}

pub(crate) fn pool2d(x: &ArrayD<f64>, taps: Taps, f: impl Fn(&[f64]) -> f64) -> ArrayD<f64> {
    let (n, c, h, width) = (x.shape()[0], x.shape()[1], x.shape()[2], x.shape()[3]);
    let [oh, ow] = taps.output([h, width]);
    ArrayD::from_shape_fn(IxDyn(&[n, c, oh, ow]), |at| {
        let mut values = Vec::new();
        for i in 0..taps.kernel[0] {
            for j in 0..taps.kernel[1] {
                if let (Some(y), Some(z)) = (taps.from(0, at[2], i, h), taps.from(1, at[3], j, width)) {
                    values.push(x[[at[0], at[1], y, z]]);
                }
            }
        }
        f(&values)
    })
}
