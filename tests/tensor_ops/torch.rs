//! Against values that PyTorch computed (`reference.py`), and a network that it trained.

use std::path::Path;

use cantus::Tensor;
use cantus::ops::Window;

use crate::{by_turns, close, digits, name, wide};

#[test]
fn definitions_are_pytorchs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tensor_ops/reference");
    for engine in by_turns() {
        let file = |name: &str| Tensor::from_npy(engine, folder.join(format!("{name}.npy"))).unwrap();
        let (image, weight, rows) = (file("image"), file("weight"), file("rows"));
        let (gain, bias) = (file("gain"), file("bias"));
        let window = |stride, dilation| Window::new(stride, [1, 1], dilation);
        let cases = [
            ("conv2d", image.conv2d(&weight, window([2, 1], [1, 2]), 2)),
            ("max_pool2d", image.max_pool2d([3, 2], window([2, 2], [2, 1]))),
            ("avg_pool2d", image.avg_pool2d([3, 2], window([1, 2], [1, 1]), true)),
            ("avg_pool2d_inside", image.avg_pool2d([3, 2], window([1, 2], [1, 1]), false)),
            ("rms_norm", rows.rms_norm(&gain, 1e-6)),
            ("layer_norm", rows.layer_norm(&gain, &bias, 1e-5)),
            ("softmax", rows.softmax(0)),
            ("log_softmax", rows.log_softmax(1)),
            ("relu", rows.relu()),
            ("sigmoid", rows.sigmoid()),
            ("silu", rows.silu()),
            ("gelu", rows.gelu()),
            ("gelu_tanh", rows.gelu_tanh()),
            ("variance", rows.variance(&[1], 1.0, false)),
        ];
        for (operation, expr) in cases {
            let expected = wide(&file(operation).to_array::<f32>().unwrap());
            close(&expr, &expected, 5e-6, &format!("{operation} on {}", name(engine)));
        }
    }
}

#[test]
fn every_digit_is_read_as_pytorch_reads_it() {
    for engine in by_turns() {
        let network = digits::Network::load(engine, digits::folder()).unwrap();
        let images = Tensor::from_npy(engine, digits::folder().join("images.npy")).unwrap();
        let expected = Tensor::from_npy(engine, digits::folder().join("torch_labels.npy")).unwrap();
        let read = network.read(&images).unwrap();
        assert_eq!(read.len(), 1797);
        assert_eq!(read, expected.to_vec::<u32>().unwrap(), "{}", name(engine));
    }
}
