//! Memory scopes, limits, and downloads of many tensors.

use std::sync::Mutex;

use cantus::{Engine, Error, Fallback, Tensor};

use crate::{by_turns, engines, name};

/// An engine of its own on the same device, with a limit.
fn beside(engine: &Engine, limit: Option<u64>) -> Engine {
    let device = &engine.selected().device;
    let builder = Engine::builder().backend(&device.backend).device(device.index).fallback(Fallback::Never);
    match limit {
        Some(limit) => builder.memory_limit(limit),
        None => builder,
    }
    .build()
    .unwrap()
}

#[test]
fn a_scope_gives_back_what_it_does_not_return() {
    for engine in by_turns() {
        let what = name(engine);
        let engine = beside(engine, None);
        let x = engine.tensor_from(&[2.0_f32; 1 << 16], &[256, 256]).unwrap();
        let held: Mutex<Vec<Tensor>> = Mutex::default();
        let (sum, kept) = engine.memory_scope(|| {
            let doubled = (&x * 2.0).eval().unwrap();
            let inner = engine.memory_scope(|| {
                let more = (&doubled + 1.0).eval().unwrap();
                held.lock().unwrap().push(more.clone());
                (&more + 1.0).eval()
            });
            let inner = inner.unwrap();
            held.lock().unwrap().push(inner.clone());
            (inner.sum(&[], false).eval().unwrap(), Some(doubled))
        });
        // What was computed from them is sound.
        assert_eq!(sum.to_vec::<f32>().unwrap(), [6.0 * 65536.0], "{what}");
        assert_eq!(kept.unwrap().to_vec::<f32>().unwrap()[0], 4.0, "{what}");
        assert_eq!(x.to_vec::<f32>().unwrap()[0], 2.0, "{what}");
        let before = engine.memory();
        for tensor in held.lock().unwrap().iter() {
            let error = tensor.to_vec::<f32>().unwrap_err();
            assert!(error.to_string().contains("memory scope"), "{what}: {error}");
            let error = (tensor + 1.0).eval().unwrap_err();
            assert!(error.to_string().contains("memory scope"), "{what}: {error}");
        }
        // Held or not, their memory is in the pool: x and the kept sum, which is small, are in use.
        assert!(before.in_use < 2 * x.byte_len(), "{what}: {before:?}");
        assert!(before.pooled >= 2 * x.byte_len(), "{what}: {before:?}");
        // A panic ends a scope too.
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            engine.memory_scope(|| -> () {
                held.lock().unwrap().push(engine.tensor(&[1.0_f32]).unwrap());
                panic!("the work gave up");
            })
        }));
        assert!(caught.is_err());
        let after = engine.tensor(&[5.0_f32]).unwrap();
        engine.memory_scope(|| ());
        assert_eq!(after.to_vec::<f32>().unwrap(), [5.0], "made outside of any scope");
    }
}

#[test]
fn scopes_are_their_threads_own() {
    let engine = beside(&engines()[0], None);
    let (made, waiting) = std::sync::mpsc::channel();
    std::thread::scope(|threads| {
        engine.memory_scope(|| {
            threads.spawn(|| made.send(engine.tensor(&[7.0_f32]).unwrap()).unwrap());
            let other: Tensor = waiting.recv().unwrap();
            drop(made.send(other));
        });
    });
    assert_eq!(waiting.recv().unwrap().to_vec::<f32>().unwrap(), [7.0]);
}

#[test]
fn beyond_the_limit_the_pool_is_emptied_first() {
    const MIB: usize = 1 << 20;
    for engine in by_turns() {
        let what = name(engine);
        let engine = beside(engine, Some(12 * MIB as u64));
        // Sizes of three classes: none can take another's memory.
        for count in [MIB, 3 * MIB / 2, 5 * MIB / 4] {
            let tensor = engine.zeros::<f32>(&[count]).unwrap();
            assert_eq!(tensor.to_vec::<f32>().unwrap().len(), count, "{what}");
        }
        let figures = engine.memory();
        assert!(figures.in_use + figures.pooled <= 12 * MIB as u64, "{what}: {figures:?}");
        let held = engine.zeros::<f32>(&[2 * MIB]).unwrap();
        let error = engine.zeros::<f32>(&[3 * MIB / 2]).unwrap_err();
        let Error::MemoryLimit { requested, in_use, limit, .. } = &error else { panic!("{what}: {error}") };
        assert_eq!((*limit, *requested >= 6 * MIB as u64, *in_use >= 8 * MIB as u64), (12 * MIB as u64, true, true));
        let text = error.to_string();
        assert!(text.contains("12") && text.contains('8') && text.contains('6'), "{what}: {text}");
        drop(held);
        engine.zeros::<f32>(&[3 * MIB / 2]).unwrap();
    }
}

#[test]
fn many_are_downloaded_at_once() {
    for engine in by_turns() {
        let tensors: Vec<Tensor> =
            (0..50).map(|n| (&engine.tensor(&vec![n as f32; 1 + n * 37]).unwrap() * 2.0).eval().unwrap()).collect();
        let contents = engine.to_vecs::<f32>(&tensors.iter().collect::<Vec<_>>()).unwrap();
        for (n, values) in contents.iter().enumerate() {
            assert_eq!(*values, vec![2.0 * n as f32; 1 + n * 37], "{}", name(engine));
        }
        let wrong = engine.tensor(&[1_u32]).unwrap();
        assert!(engine.to_vecs::<f32>(&[&tensors[0], &wrong]).is_err());
        assert!(engine.to_vecs::<f32>(&[]).unwrap().is_empty());
    }
}
