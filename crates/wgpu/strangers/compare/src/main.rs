//! Compares what a program wrote on two devices: `strangers-compare FOLDER FOLDER`.
//!
//! Files of float32 are compared by the largest difference, beside the largest number; pictures by the largest difference of a channel, and the pixels in
//! which one differs by more than 2 of 255. Ends with 1 where floats differ by more than 2 % of the largest, or more than one pixel in 1000.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn floats(path: &Path) -> Outcome<Vec<f32>> {
    Ok(fs::read(path)?.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

fn picture(path: &Path) -> Outcome<(u32, Vec<u8>)> {
    let mut reader = png::Decoder::new(std::io::BufReader::new(fs::File::open(path)?)).read_info()?;
    let mut pixels = vec![0; reader.output_buffer_size().ok_or("a picture that is too large")?];
    let info = reader.next_frame(&mut pixels)?;
    Ok((info.width, pixels))
}

/// Says how two files differ, and whether that is little.
fn compare(a: &Path, b: &Path) -> Outcome<bool> {
    let name = a.file_name().unwrap_or_default().to_string_lossy();
    if a.extension().is_some_and(|extension| extension == "png") {
        let (a, b) = (picture(a)?, picture(b)?);
        if a.0 != b.0 || a.1.len() != b.1.len() {
            return Err(format!("{name}: the pictures have different sizes").into());
        }
        let differences =
            a.1.chunks(4)
                .zip(b.1.chunks(4))
                .map(|(a, b)| a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0));
        let (mut most, mut pixels, mut beyond) = (0, 0_usize, 0_usize);
        for difference in differences {
            most = most.max(difference);
            pixels += 1;
            beyond += usize::from(difference > 2);
        }
        println!("{name}: {most} of 255 at most, {beyond} of {pixels} pixels by more than 2");
        return Ok(beyond * 1000 <= pixels);
    }
    let (a, b) = (floats(a)?, floats(b)?);
    if a.len() != b.len() {
        return Err(format!("{name}: {} numbers and {}", a.len(), b.len()).into());
    }
    let most = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let largest = a.iter().map(|a| a.abs()).fold(0.0, f32::max);
    let finite = a.iter().chain(&b).all(|number| number.is_finite());
    println!("{name}: {} numbers, {most:.2e} at most, the largest {largest:.2e}", a.len());
    Ok(finite && most <= 0.02 * largest)
}

fn main() -> Outcome<ExitCode> {
    let folders: Vec<String> = std::env::args().skip(1).collect();
    let [a, b] = &folders[..] else { return Err("the arguments are two folders".into()) };
    let mut names: Vec<_> = fs::read_dir(a)?.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
    names.sort();
    if names.is_empty() {
        return Err(format!("{a} is empty").into());
    }
    let mut equal = true;
    for name in names {
        equal &= compare(&Path::new(a).join(&name), &Path::new(b).join(&name))?;
    }
    Ok(if equal { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
