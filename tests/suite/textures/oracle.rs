//! Textures in float64, from WebGPU's and Vulkan's specifications: decoding, address modes, filters, levels, cubes.

use cantus::{AddressMode, FilterMode, Sampler, TextureFormat};

pub type Texel = [f64; 4];

/// A texture of decoded texels, level by level.
#[derive(Debug, Clone)]
pub struct Image {
    pub levels: Vec<Level>,
    /// Its third axis is filtered.
    pub is_block: bool,
}

#[derive(Debug, Clone)]
pub struct Level {
    pub size: [usize; 3],
    pub texels: Vec<Texel>,
}

impl Level {
    fn at(&self, x: usize, y: usize, z: usize) -> Texel {
        self.texels[(z * self.size[1] + y) * self.size[0] + x]
    }
}

fn wrap(mode: AddressMode, index: i64, size: usize) -> usize {
    let size = size as i64;
    let index = match mode {
        AddressMode::ClampToEdge => index.clamp(0, size - 1),
        AddressMode::Repeat => index.rem_euclid(size),
        AddressMode::MirrorRepeat => {
            let place = index.rem_euclid(2 * size);
            if place < size { place } else { 2 * size - 1 - place }
        }
    };
    index as usize
}

fn weighted(parts: &[(f64, Texel)]) -> Texel {
    let mut sum = [0.0; 4];
    for (weight, texel) in parts {
        for (channel, value) in sum.iter_mut().zip(texel) {
            *channel += weight * value;
        }
    }
    sum
}

/// Computes `textureSampleLevel`; `layer` is of the third axis where it is not filtered. `compare` makes a number of each texel.
pub fn sample(
    image: &Image,
    sampler: &Sampler,
    at: [f64; 3],
    layer: usize,
    offset: [i64; 3],
    lod: f64,
    compare: Option<&dyn Fn(f64) -> f64>,
) -> Texel {
    let lod = lod.clamp(f64::from(sampler.lod_min_clamp), f64::from(sampler.lod_max_clamp));
    let filter = if lod <= 0.0 { sampler.mag_filter } else { sampler.min_filter };
    let last = image.levels.len() - 1;
    let one =
        |level: usize| filtered(&image.levels[level], image.is_block, sampler, filter, at, layer, offset, compare);
    let place = lod.clamp(0.0, last as f64);
    match sampler.mipmap_filter {
        FilterMode::Nearest => one((place + 0.5).ceil() as usize - 1),
        FilterMode::Linear => {
            let part = place.fract();
            let low = place as usize;
            weighted(&[(1.0 - part, one(low)), (part, one((low + 1).min(last)))])
        }
    }
}

#[allow(clippy::too_many_arguments, reason = "as many as the builtin has")]
fn filtered(
    level: &Level,
    is_block: bool,
    sampler: &Sampler,
    filter: FilterMode,
    at: [f64; 3],
    layer: usize,
    offset: [i64; 3],
    compare: Option<&dyn Fn(f64) -> f64>,
) -> Texel {
    let texel = |index: [i64; 3]| {
        let place = |axis: usize| wrap(sampler.address_mode[axis], index[axis] + offset[axis], level.size[axis]);
        let z = if is_block { place(2) } else { layer };
        let found = level.at(place(0), place(1), z);
        compare.map_or(found, |compare| [compare(found[0]); 4])
    };
    let scaled: Vec<f64> = (0..3).map(|axis| at[axis] * level.size[axis] as f64).collect();
    if filter == FilterMode::Nearest {
        return texel([0, 1, 2].map(|axis: usize| scaled[axis].floor() as i64));
    }
    let low = [0, 1, 2].map(|axis: usize| (scaled[axis] - 0.5).floor());
    let part = [0, 1, 2].map(|axis: usize| scaled[axis] - 0.5 - low[axis]);
    let mut parts = Vec::new();
    for corner in 0..8_usize {
        let step = [0, 1, 2].map(|axis| (corner >> axis) & 1);
        if !is_block && step[2] == 1 {
            continue;
        }
        let axes = if is_block { 3 } else { 2 };
        let weight: f64 = (0..axes).map(|axis| if step[axis] == 1 { part[axis] } else { 1.0 - part[axis] }).product();
        if weight != 0.0 {
            parts.push((weight, texel([0, 1, 2].map(|axis: usize| low[axis] as i64 + step[axis] as i64))));
        }
    }
    weighted(&parts)
}

/// The face that a direction points to, and s and t on it in [-1, 1].
pub fn face(direction: [f64; 3]) -> (usize, [f64; 2]) {
    let [x, y, z] = direction;
    let (face, s, t, size) = if z.abs() >= x.abs() && z.abs() >= y.abs() {
        if z < 0.0 { (5, -x, -y, -z) } else { (4, x, -y, z) }
    } else if y.abs() >= x.abs() {
        if y < 0.0 { (3, x, -z, -y) } else { (2, x, z, y) }
    } else if x < 0.0 {
        (1, z, -y, -x)
    } else {
        (0, -z, -y, x)
    };
    (face, [s / size, t / size])
}

/// The middle of a texel on the cube's surface; x and y may lie outside of the face, on its plane.
fn position(face: usize, x: i64, y: i64, size: usize) -> [f64; 3] {
    let s = (2 * x + 1) as f64 / size as f64 - 1.0;
    let t = (2 * y + 1) as f64 / size as f64 - 1.0;
    match face {
        0 => [1.0, -t, -s],
        1 => [-1.0, -t, s],
        2 => [s, 1.0, t],
        3 => [s, -1.0, -t],
        4 => [s, -t, 1.0],
        _ => [-s, -t, -1.0],
    }
}

/// The texels of other faces that are nearest to a place, as many as asked for.
fn nearest_elsewhere(level: &Level, cube: usize, face: usize, place: [f64; 3], count: usize) -> Vec<Texel> {
    let size = level.size[0];
    let mut all = Vec::new();
    for other in (0..6).filter(|&other| other != face) {
        for y in 0..size {
            for x in 0..size {
                let there = position(other, x as i64, y as i64, size);
                let distance: f64 = (0..3).map(|axis| (there[axis] - place[axis]).powi(2)).sum();
                all.push((distance, level.at(x, y, 6 * cube + other)));
            }
        }
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all.into_iter().take(count).map(|(_, texel)| texel).collect()
}

/// One level of a cube; a texel beyond an edge is the nearest of the next face, one beyond a corner the mean of the three that meet there.
pub fn sample_cube(level: &Level, filter: FilterMode, direction: [f64; 3], cube: usize) -> Texel {
    let size = level.size[0];
    let (face, [s, t]) = face(direction);
    let scaled = [s, t].map(|side| (side * 0.5 + 0.5) * size as f64);
    let texel = |x: i64, y: i64| {
        let is_out = |side: i64| side < 0 || side >= size as i64;
        let inner = |side: i64| side.clamp(0, size as i64 - 1) as usize;
        match (is_out(x), is_out(y)) {
            (false, false) => level.at(inner(x), inner(y), 6 * cube + face),
            (true, true) => {
                let mut parts = vec![(1.0 / 3.0, level.at(inner(x), inner(y), 6 * cube + face))];
                let near =
                    nearest_elsewhere(level, cube, face, position(face, inner(x) as i64, inner(y) as i64, size), 2);
                parts.extend(near.into_iter().map(|texel| (1.0 / 3.0, texel)));
                weighted(&parts)
            }
            _ => nearest_elsewhere(level, cube, face, position(face, x, y, size), 1)[0],
        }
    };
    if filter == FilterMode::Nearest {
        let place = scaled.map(|side| (side.floor() as i64).clamp(0, size as i64 - 1));
        return texel(place[0], place[1]);
    }
    let low = scaled.map(|side| (side - 0.5).floor());
    let part = [scaled[0] - 0.5 - low[0], scaled[1] - 0.5 - low[1]];
    let mut parts = Vec::new();
    for (dx, dy) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
        let weight = |step: i64, part: f64| if step == 1 { part } else { 1.0 - part };
        let weight = weight(dx, part[0]) * weight(dy, part[1]);
        if weight != 0.0 {
            parts.push((weight, texel(low[0] as i64 + dx, low[1] as i64 + dy)));
        }
    }
    weighted(&parts)
}

/// A half, or a float of fewer bits without sign.
fn small_float(bits: u32, mantissa: u32) -> f64 {
    let exponent = bits >> mantissa & 31;
    let fraction = f64::from(bits & ((1 << mantissa) - 1)) / f64::from(1 << mantissa);
    match exponent {
        0 => fraction * 2.0_f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2.0_f64.powi(exponent as i32 - 15),
    }
}

fn half(bits: u32) -> f64 {
    small_float(bits & 0x7fff, 10) * if bits >> 15 & 1 == 1 { -1.0 } else { 1.0 }
}

/// A texel's bytes as the numbers that a shader reads.
pub fn decode(format: TextureFormat, bytes: &[u8]) -> Texel {
    let name = format.name();
    let word = |start: usize, count: usize| {
        bytes[start..start + count].iter().rev().fold(0_u32, |word, &byte| word << 8 | u32::from(byte))
    };
    match name {
        "rgb9e5ufloat" => {
            let word = word(0, 4);
            let scale = 2.0_f64.powi((word >> 27) as i32 - 24);
            return [0, 9, 18]
                .map(|shift| f64::from(word >> shift & 511) * scale)
                .into_iter()
                .chain([1.0])
                .collect::<Vec<_>>()
                .try_into()
                .unwrap();
        }
        "rg11b10ufloat" => {
            let word = word(0, 4);
            return [small_float(word & 0x7ff, 6), small_float(word >> 11 & 0x7ff, 6), small_float(word >> 22, 5), 1.0];
        }
        "rgb10a2unorm" | "rgb10a2uint" => {
            let word = word(0, 4);
            let scale = |most: f64| if name.ends_with("uint") { 1.0 } else { most };
            let ten = |shift: u32| f64::from(word >> shift & 1023) / scale(1023.0);
            return [ten(0), ten(10), ten(20), f64::from(word >> 30) / scale(3.0)];
        }
        _ => {}
    }
    let channels = format.channels() as usize;
    let size = bytes.len() / channels;
    let bits = 8 * size as u32;
    let mut texel = [0.0, 0.0, 0.0, 1.0];
    for (channel, value) in texel.iter_mut().enumerate().take(channels) {
        let word = word(channel * size, size);
        let signed = f64::from((word << (32 - bits)) as i32 >> (32 - bits));
        let most = 2.0_f64.powi(bits as i32) - 1.0;
        *value = if name.contains("unorm") {
            f64::from(word) / most
        } else if name.contains("snorm") {
            (signed / (2.0_f64.powi(bits as i32 - 1) - 1.0)).max(-1.0)
        } else if name.contains("uint") {
            f64::from(word)
        } else if name.contains("sint") {
            signed
        } else if size == 2 {
            half(word)
        } else {
            f64::from(f32::from_bits(word))
        };
    }
    if name.starts_with("bgra") {
        texel.swap(0, 2);
    }
    if name.ends_with("-srgb") {
        for value in &mut texel[..3] {
            *value = if *value <= 0.04045 { *value / 12.92 } else { ((*value + 0.055) / 1.055).powf(2.4) };
        }
    }
    texel
}
