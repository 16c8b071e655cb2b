//! The reference for the bindings: the same work by the Rust API, one line for each result. `reference BACKEND`; without one it lists
//! the backends that have a device.

use cantus::engine::Value;
use cantus::ops::field::{FieldParams, Frequency};
use cantus::{AddressMode, DType, Engine, Error, Kernel, Result, Sampler, TextureDescriptor, TextureFormat};

const SAXPY: &str = include_str!("saxpy.wgsl");
const STEPS: &str = include_str!("steps.wgsl");
const SHRINK: &str = include_str!("shrink.wgsl");

fn main() -> Result<()> {
    let Some(backend) = std::env::args().nth(1) else {
        let survey = cantus::engine::survey(&cantus::backend::Registry::with_defaults(), &cantus::Config::default());
        survey.backends.iter().filter(|backend| backend.available).for_each(|backend| println!("{}", backend.name));
        return Ok(());
    };
    let engine = Engine::builder().config(cantus::Config::default()).backend(&backend).build()?;
    let device = &engine.selected().device;
    println!("device {} {}: {}; {}", device.backend, device.index, device.name, engine.selected().why);

    let saxpy = Kernel::from_wgsl(SAXPY)?;
    let values: Vec<f32> = (0..1000).map(|i| i as f32 * 0.37 - 91.0).collect();
    let x = engine.tensor_from(&values, &[10, 100])?;
    let y = engine.tensor_from(&values.iter().map(|value| value * value).collect::<Vec<f32>>(), &[10, 100])?;
    engine.dispatch(&saxpy).bind("x", &x).bind("y", &y).set("params.a", 1.7_f64).invocations(1000_u64).run()?;
    print("saxpy", &y.to_bytes()?);

    // Integers, a vector in a uniform, workgroups along two axes, an override and an entry point.
    let steps = Kernel::from_wgsl(STEPS)?.with_entry_point("steps")?.with_override("factor", 3.0)?;
    let counts = engine.zeros_of(DType::U32, &[6, 8])?;
    let weights = Value::from([5_i64, 7].as_slice());
    engine.dispatch(&steps).bind("counts", &counts).set("grid.weights", weights).workgroups([2_u64, 3]).run()?;
    print("steps", &counts.to_bytes()?);
    engine
        .dispatch(&steps)
        .bind("counts", &counts)
        .set_bytes("grid", &[9, 0, 0, 0, 2, 0, 0, 0])
        .workgroups([2_u64, 3])
        .run()?;
    print("steps again", &counts.to_bytes()?);

    let halves: Vec<u8> = (0..14).map(|i| i * 17).collect();
    print("halves", &engine.tensor_from_bytes(DType::F16, &[7], &halves)?.to_bytes()?);

    let field =
        cantus::ops::field::field(&engine, &FieldParams::new(97, 61).frequency(Frequency::Hertz(432.0)).time(1.25))?;
    print("field", &field.to_bytes()?);
    let noise: Vec<f32> = (0..1000).map(|i| (i % 97 / 90) as f32).collect();
    let noise = engine.tensor_from(&noise, &[25, 40])?;
    print("coherence", &cantus::ops::coherence(&engine, &noise)?.to_ne_bytes());
    print("phi", &cantus::ops::field::phi_pattern(&engine, 40, 33)?.to_bytes()?);

    // An image as a camera gives it: 13 texels of four bytes in rows of 64.
    let shrink = Kernel::from_wgsl(SHRINK)?;
    let padded: Vec<u8> = (0..64 * 7_u32).map(|i| (i * 37 % 251) as u8).collect();
    let rows: Vec<u8> = padded.chunks(64).flat_map(|row| &row[..52]).copied().collect();
    let photo = engine.texture_from_bytes(&TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, 13, 7), &rows)?;
    let small = engine.texture(&TextureDescriptor::new_2d(TextureFormat::Rgba8Unorm, 6, 3))?;
    let shrunk = |sampler: Sampler| {
        let dispatch = engine.dispatch(&shrink).bind("image", &photo).bind("smp", sampler).bind("small", &small);
        dispatch.invocations([6_u64, 3]).run()
    };
    shrunk(Sampler::linear())?;
    print("shrunk", &small.to_bytes()?);
    shrunk(Sampler::nearest().address(AddressMode::MirrorRepeat))?;
    print("nearest", &small.to_bytes()?);
    photo.write(&rows.iter().map(|byte| 255 - byte).collect::<Vec<u8>>())?;
    shrunk(Sampler::linear())?;
    print("negative", &small.to_bytes()?);

    // What is wrong is said in the same words.
    say("wgsl", Kernel::from_wgsl("fn main( {").err());
    say("entry", Kernel::from_wgsl(STEPS)?.with_entry_point("stairs").err());
    say("override", Kernel::from_wgsl(STEPS)?.with_entry_point("steps")?.with_override("divisor", 1.0).err());
    say("binding", engine.dispatch(&saxpy).bind("x", &x).set("params.a", 1.0_f64).invocations(1000_u64).run().err());
    say(
        "empty",
        engine.dispatch(&saxpy).bind("x", &x).bind("y", &y).set("params.a", 1.0_f64).invocations(0_u64).run().err(),
    );
    say("shape", engine.tensor_from_bytes(DType::F32, &[3], &[0; 8]).err());
    let empty = TextureDescriptor::new_2d(TextureFormat::R8Unorm, 0, 5);
    say("picture", engine.texture(&empty).err());
    let dispatch = engine.dispatch(&shrink).bind("image", &photo).bind("small", &photo).bind("smp", Sampler::linear());
    say("texture", dispatch.invocations([6_u64, 3]).run().err());
    say(
        "frequency",
        cantus::ops::field::field(&engine, &FieldParams::new(4, 4).frequency(Frequency::Hertz(-1.0))).err(),
    );
    say("backend", Engine::builder().config(cantus::Config::default()).backend("abacus").build().err());
    Ok(())
}

/// Every bit counts: the first bytes, and FNV-1a of all.
fn print(name: &str, bytes: &[u8]) {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let first: String = bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    println!("{name} {} {first} {hash:016x}", bytes.len());
}

fn say(name: &str, error: Option<Error>) {
    println!("error {name}: {}", error.map_or_else(|| "none".to_owned(), |error| error.to_string()));
}
