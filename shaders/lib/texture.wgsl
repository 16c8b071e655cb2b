// Textures of compute kernels, over buffers of texels: what every builtin for textures does, once for all devices.
//
// `cantus-kernel` puts calls of these functions in place of the builtins. It knows a texture's format, shape and sampler, so `format`, `shape`
// and `modes` are literals there, and so is whatever is computed of them: the branches on them are decided when the kernel is made.
//
// - A texel has words of its own: invocations that store neighbouring texels never touch the same word.
// - A level follows the one before; in a level lie its layers (or slices), in a layer its rows, in a row its texels, in a texel its samples.
// - `slot` is a texture's place in `cantus_textures`: width, height, layers (or slices) and levels, then the offsets of 16 levels in words. A
//   sampler's slot holds its least and its greatest level of detail.

@group(0) @binding(0) var<uniform> cantus_textures: array<vec4u, 6>;

// A format: its type (4 bits), the logarithm of the bytes of a channel (2), channels (3), blue first (1), sRGB (1), words (3).
const UNORM = 0u;
const SNORM = 1u;
const UINT = 2u;
const SINT = 3u;
const FLOAT = 4u;
const RGB10A2 = 5u;
const RG11B10 = 6u;
const RGB9E5 = 7u;
const RGB10A2_UINT = 8u;
const BGRA = 512u;
const SRGB = 1024u;

// A shape: dimension (2 bits; a cube has 2), several levels (1), a cube (1), a third axis (1), samples (from bit 5).
const LEVELS = 4u;
const CUBE = 8u;
const THIRD = 16u;

// A sampler: address modes (2 bits each), filters (1 each), comparison (4), whether there is an offset (1), whether to clamp to the edge
// half a texel inside (1).
const REPEAT = 1u;
const MIRROR = 2u;
const MAG_LINEAR = 64u;
const MIN_LINEAR = 128u;
const MIP_LINEAR = 256u;
const OFFSET = 8192u;

// Where.

fn level_count(slot: u32, shape: u32) -> u32 {
    if (shape & LEVELS) == 0u {
        return 1u;
    }
    return cantus_textures[slot].w;
}

fn layer_count(slot: u32, shape: u32) -> u32 {
    if (shape & CUBE) != 0u {
        return cantus_textures[slot].z / 6u;
    }
    return cantus_textures[slot].z;
}

// Width, height, and slices or layers of a level that exists.
fn level_size(slot: u32, shape: u32, level: u32) -> vec3u {
    let size = cantus_textures[slot].xyz;
    if (shape & LEVELS) == 0u {
        return size;
    }
    let shrunk = max(size >> vec3u(level), vec3u(1u));
    if (shape & 3u) == 3u {
        return shrunk;
    }
    return vec3u(shrunk.xy, size.z);
}

// Of the level that a kernel asks for: zeros where there is none.
fn queried_size(slot: u32, shape: u32, level: u32) -> vec3u {
    if level >= level_count(slot, shape) {
        return vec3u();
    }
    return level_size(slot, shape, level);
}

fn place(slot: u32, format: u32, shape: u32, texel: vec3u, sample: u32, level: u32, size: vec3u) -> u32 {
    var at = texel.x;
    if (shape & THIRD) != 0u {
        at += size.x * (texel.y + size.y * texel.z);
    } else if (shape & 3u) != 1u {
        at += size.x * texel.y;
    }
    if (shape >> 5u) > 1u {
        at = at * (shape >> 5u) + sample;
    }
    if (format >> 11u) > 1u {
        at *= format >> 11u;
    }
    if (shape & LEVELS) == 0u {
        return cantus_textures[slot + 1u].x + at;
    }
    return cantus_textures[slot + 1u + (level >> 2u)][level & 3u] + at;
}

// Whether a texel exists.
fn exists(slot: u32, shape: u32, texel: vec3u, sample: u32, level: u32, size: vec3u) -> bool {
    if (shape & LEVELS) != 0u {
        if level >= cantus_textures[slot].w {
            return false;
        }
    } else if level != 0u {
        return false;
    }
    if (shape >> 5u) > 1u {
        if sample >= (shape >> 5u) {
            return false;
        }
    }
    if (shape & THIRD) != 0u {
        return all(texel < size);
    }
    if (shape & 3u) == 1u {
        return texel.x < size.x;
    }
    return all(texel.xy < size.xy);
}

// Words.

fn words_at(texels: ptr<storage, array<u32>, read_write>, format: u32, at: u32) -> vec4u {
    if (format >> 11u) == 1u {
        return vec4u((*texels)[at], 0u, 0u, 0u);
    }
    if (format >> 11u) == 2u {
        return vec4u((*texels)[at], (*texels)[at + 1u], 0u, 0u);
    }
    return vec4u((*texels)[at], (*texels)[at + 1u], (*texels)[at + 2u], (*texels)[at + 3u]);
}

fn put_words(texels: ptr<storage, array<u32>, read_write>, format: u32, at: u32, words: vec4u) {
    (*texels)[at] = words.x;
    if (format >> 11u) > 1u {
        (*texels)[at + 1u] = words.y;
    }
    if (format >> 11u) > 2u {
        (*texels)[at + 2u] = words.z;
        (*texels)[at + 3u] = words.w;
    }
}

fn from_srgb(encoded: f32) -> f32 {
    return select(pow((encoded + 0.055) / 1.055, 2.4), encoded / 12.92, encoded <= 0.04045);
}

// Channels that a format lacks are 0, its alpha 1.
fn filled(format: u32, value: vec4f) -> vec4f {
    if ((format >> 6u) & 7u) == 1u {
        return vec4f(value.x, 0.0, 0.0, 1.0);
    }
    if ((format >> 6u) & 7u) == 2u {
        return vec4f(value.xy, 0.0, 1.0);
    }
    return value;
}

// Integers below 2^k over 2^k - 1, exactly rounded where no compiler reorders: v / (2^k - 1) is v / 2^k and 1 / (2^k - 1) of it. `step` is 2^-k.
fn fraction(value: vec4u, step: f32, inverse: f32) -> vec4f {
    let part = vec4f(bitcast<vec4i>(value)) * step;
    return part + part * inverse;
}

fn signed_fraction(value: vec4i, step: f32, inverse: f32) -> vec4f {
    let part = vec4f(value) * step;
    return part + part * inverse;
}

fn decode_float(format: u32, words: vec4u) -> vec4f {
    if (format & 15u) == FLOAT {
        if ((format >> 4u) & 3u) == 2u {
            return filled(format, bitcast<vec4f>(words));
        }
        if ((format >> 6u) & 7u) < 3u {
            return filled(format, vec4f(unpack2x16float(words.x), 0.0, 1.0));
        }
        return vec4f(unpack2x16float(words.x), unpack2x16float(words.y));
    }
    if (format & 15u) == UNORM {
        if ((format >> 4u) & 3u) == 1u {
            let halves = vec4u(words.x & 0xffffu, words.x >> 16u, words.y & 0xffffu, words.y >> 16u);
            return filled(format, fraction(halves, 0x1p-16, 1.0 / 65535.0));
        }
        let w = words.x;
        let value = fraction(vec4u(w & 255u, (w >> 8u) & 255u, (w >> 16u) & 255u, w >> 24u), 0x1p-8, 1.0 / 255.0);
        if (format & SRGB) != 0u {
            let linear = vec4f(from_srgb(value.x), from_srgb(value.y), from_srgb(value.z), value.w);
            if (format & BGRA) != 0u {
                return linear.zyxw;
            }
            return linear;
        }
        if (format & BGRA) != 0u {
            return value.zyxw;
        }
        return filled(format, value);
    }
    if (format & 15u) == SNORM {
        // The least integer lies below -1.
        let whole = decode_sint(format - SNORM + SINT, words);
        if ((format >> 4u) & 3u) == 1u {
            return filled(format, signed_fraction(max(whole, vec4i(-32767i)), 0x1p-15, 1.0 / 32767.0));
        }
        return filled(format, signed_fraction(max(whole, vec4i(-127i)), 0x1p-7, 1.0 / 127.0));
    }
    let w = words.x;
    if (format & 15u) == RGB10A2 {
        let parts = vec4u(vec3u(w, w >> 10u, w >> 20u) & vec3u(1023u), w >> 30u);
        return vec4f(fraction(parts, 0x1p-10, 1.0 / 1023.0).xyz, f32(parts.w) * (1.0 / 3.0));
    }
    if (format & 15u) == RG11B10 {
        // A float of 11 or 10 bits is a half without its sign and its last bits.
        let green_red = ((w & 0x7ffu) << 4u) | (((w >> 11u) & 0x7ffu) << 20u);
        return vec4f(unpack2x16float(green_red), unpack2x16float(((w >> 22u) & 0x3ffu) << 5u).x, 1.0);
    }
    // One exponent for three numbers of 9 bits.
    let scale = bitcast<f32>(((w >> 27u) + 103u) << 23u);
    return vec4f(vec3f(vec3u(w, w >> 9u, w >> 18u) & vec3u(511u)) * scale, 1.0);
}

fn decode_uint(format: u32, words: vec4u) -> vec4u {
    var value = words;
    if (format & 15u) == RGB10A2_UINT {
        let w = words.x;
        return vec4u(vec3u(w, w >> 10u, w >> 20u) & vec3u(1023u), w >> 30u);
    }
    if ((format >> 4u) & 3u) == 0u {
        value = (vec4u(words.x) >> vec4u(0u, 8u, 16u, 24u)) & vec4u(255u);
    } else if ((format >> 4u) & 3u) == 1u {
        value = (words.xxyy >> vec4u(0u, 16u, 0u, 16u)) & vec4u(0xffffu);
    }
    if ((format >> 6u) & 7u) == 1u {
        return vec4u(value.x, 0u, 0u, 1u);
    }
    if ((format >> 6u) & 7u) == 2u {
        return vec4u(value.xy, 0u, 1u);
    }
    return value;
}

fn decode_sint(format: u32, words: vec4u) -> vec4i {
    var value = bitcast<vec4i>(words);
    if ((format >> 4u) & 3u) == 0u {
        value = bitcast<vec4i>(vec4u(words.x) << vec4u(24u, 16u, 8u, 0u)) >> vec4u(24u);
    } else if ((format >> 4u) & 3u) == 1u {
        value = bitcast<vec4i>(words.xxyy << vec4u(16u, 0u, 16u, 0u)) >> vec4u(16u);
    }
    if ((format >> 6u) & 7u) == 1u {
        return vec4i(value.x, 0i, 0i, 1i);
    }
    if ((format >> 6u) & 7u) == 2u {
        return vec4i(value.xy, 0i, 1i);
    }
    return value;
}

// To a float without sign of 6 + `dropped` - 17 bits of mantissa and 5 of exponent, to the nearest, ties to even.
fn small_float(value: f32, dropped: u32) -> u32 {
    let bits = bitcast<u32>(value);
    let infinity = 31u << (23u - dropped);
    if (bits & 0x7fffffffu) > 0x7f800000u {
        return infinity | 1u;
    }
    if (bits >> 31u) != 0u {
        return 0u;
    }
    if bits < 0x38800000u {
        // Below 2^-14: a multiple of the least one. Adding 2^23 of it rounds.
        let least = bitcast<f32>((dropped + 90u) << 23u);
        let rounded = bitcast<u32>(value + least * 8388608.0) & 0x7fffffu;
        return rounded;
    }
    let odd = (bits >> dropped) & 1u;
    let rounded = (bits + ((1u << (dropped - 1u)) - 1u) + odd) >> dropped;
    return min(rounded - (112u << (23u - dropped)), infinity);
}

// A finite value stays finite.
fn least_infinite(value: f32, dropped: u32) -> u32 {
    let encoded = small_float(value, dropped);
    let infinity = 31u << (23u - dropped);
    if encoded == infinity {
        if (bitcast<u32>(value) & 0x7fffffffu) < 0x7f800000u {
            return infinity - 1u;
        }
    }
    return encoded;
}

fn encode_float(format: u32, value: vec4f) -> vec4u {
    if (format & 15u) == FLOAT {
        if ((format >> 4u) & 3u) == 2u {
            return bitcast<vec4u>(value);
        }
        if ((format >> 6u) & 7u) == 1u {
            return vec4u(pack2x16float(vec2f(value.x, 0.0)), 0u, 0u, 0u);
        }
        return vec4u(pack2x16float(value.xy), pack2x16float(value.zw), 0u, 0u);
    }
    var kept = value;
    if ((format >> 6u) & 7u) == 1u {
        kept = vec4f(value.x, 0.0, 0.0, 0.0);
    } else if ((format >> 6u) & 7u) == 2u {
        kept = vec4f(value.xy, 0.0, 0.0);
    }
    if (format & BGRA) != 0u {
        kept = value.zyxw;
    }
    // By hand: drivers differ in how they round.
    if (format & 15u) == UNORM {
        if ((format >> 4u) & 3u) == 1u {
            let parts = bitcast<vec4u>(vec4i(clamp(kept, vec4f(), vec4f(1.0)) * 65535.0 + 0.5)) << vec4u(0u, 16u, 0u, 16u);
            return vec4u(parts.x | parts.y, parts.z | parts.w, 0u, 0u);
        }
        let parts = bitcast<vec4u>(vec4i(clamp(kept, vec4f(), vec4f(1.0)) * 255.0 + 0.5)) << vec4u(0u, 8u, 16u, 24u);
        return vec4u(parts.x | parts.y | parts.z | parts.w, 0u, 0u, 0u);
    }
    if (format & 15u) == SNORM {
        let bounded = clamp(kept, vec4f(-1.0), vec4f(1.0));
        if ((format >> 4u) & 3u) == 1u {
            let whole = bitcast<vec4u>(vec4i(floor(bounded * 32767.0 + 0.5))) & vec4u(0xffffu);
            let parts = whole << vec4u(0u, 16u, 0u, 16u);
            return vec4u(parts.x | parts.y, parts.z | parts.w, 0u, 0u);
        }
        let whole = bitcast<vec4u>(vec4i(floor(bounded * 127.0 + 0.5))) & vec4u(255u);
        let parts = whole << vec4u(0u, 8u, 16u, 24u);
        return vec4u(parts.x | parts.y | parts.z | parts.w, 0u, 0u, 0u);
    }
    if (format & 15u) == RGB10A2 {
        let parts = vec4u(floor(clamp(value, vec4f(), vec4f(1.0)) * vec4f(1023.0, 1023.0, 1023.0, 3.0) + 0.5));
        return vec4u(parts.x | (parts.y << 10u) | (parts.z << 20u) | (parts.w << 30u), 0u, 0u, 0u);
    }
    return vec4u(
        least_infinite(value.x, 17u) | (least_infinite(value.y, 17u) << 11u) | (least_infinite(value.z, 18u) << 22u),
        0u, 0u, 0u);
}

fn encode_uint(format: u32, value: vec4u) -> vec4u {
    if (format & 15u) == RGB10A2_UINT {
        let parts = min(value, vec4u(1023u, 1023u, 1023u, 3u));
        return vec4u(parts.x | (parts.y << 10u) | (parts.z << 20u) | (parts.w << 30u), 0u, 0u, 0u);
    }
    var kept = value;
    if ((format >> 6u) & 7u) == 1u {
        kept = vec4u(value.x, 0u, 0u, 0u);
    } else if ((format >> 6u) & 7u) == 2u {
        kept = vec4u(value.xy, 0u, 0u);
    }
    if ((format >> 4u) & 3u) == 0u {
        let parts = min(kept, vec4u(255u)) << vec4u(0u, 8u, 16u, 24u);
        return vec4u(parts.x | parts.y | parts.z | parts.w, 0u, 0u, 0u);
    }
    if ((format >> 4u) & 3u) == 1u {
        let parts = min(kept, vec4u(0xffffu)) << vec4u(0u, 16u, 0u, 16u);
        return vec4u(parts.x | parts.y, parts.z | parts.w, 0u, 0u);
    }
    return kept;
}

fn encode_sint(format: u32, value: vec4i) -> vec4u {
    var kept = value;
    if ((format >> 6u) & 7u) == 1u {
        kept = vec4i(value.x, 0i, 0i, 0i);
    } else if ((format >> 6u) & 7u) == 2u {
        kept = vec4i(value.xy, 0i, 0i);
    }
    if ((format >> 4u) & 3u) == 0u {
        let bytes = bitcast<vec4u>(clamp(kept, vec4i(-128i), vec4i(127i))) & vec4u(255u);
        let parts = bytes << vec4u(0u, 8u, 16u, 24u);
        return vec4u(parts.x | parts.y | parts.z | parts.w, 0u, 0u, 0u);
    }
    if ((format >> 4u) & 3u) == 1u {
        let halves = bitcast<vec4u>(clamp(kept, vec4i(-32768i), vec4i(32767i))) & vec4u(0xffffu);
        let parts = halves << vec4u(0u, 16u, 0u, 16u);
        return vec4u(parts.x | parts.y, parts.z | parts.w, 0u, 0u);
    }
    return bitcast<vec4u>(kept);
}

// Loads and stores: from where nothing is, words of zeros (an alpha that the format lacks is 1); nothing to there.

fn load_words(texels: ptr<storage, array<u32>, read_write>, slot: u32, format: u32, shape: u32, texel: vec3u, sample: u32, level: u32) -> vec4u {
    let size = level_size(slot, shape, level);
    return words_at(texels, format, place(slot, format, shape, texel, sample, level, size));
}

fn load_float(texels: ptr<storage, array<u32>, read_write>, slot: u32, format: u32, shape: u32, texel: vec3u, sample: u32, level: u32) -> vec4f {
    let is_there = exists(slot, shape, texel, sample, level, level_size(slot, shape, level));
    let words = load_words(texels, slot, format, shape, texel, sample, level);
    return decode_float(format, select(vec4u(), words, is_there));
}

fn load_uint(texels: ptr<storage, array<u32>, read_write>, slot: u32, format: u32, shape: u32, texel: vec3u, sample: u32, level: u32) -> vec4u {
    let is_there = exists(slot, shape, texel, sample, level, level_size(slot, shape, level));
    let words = load_words(texels, slot, format, shape, texel, sample, level);
    return decode_uint(format, select(vec4u(), words, is_there));
}

fn load_sint(texels: ptr<storage, array<u32>, read_write>, slot: u32, format: u32, shape: u32, texel: vec3u, sample: u32, level: u32) -> vec4i {
    let is_there = exists(slot, shape, texel, sample, level, level_size(slot, shape, level));
    let words = load_words(texels, slot, format, shape, texel, sample, level);
    return decode_sint(format, select(vec4u(), words, is_there));
}

fn store_float(texels: ptr<storage, array<u32>, read_write>, slot: u32, format: u32, shape: u32, texel: vec3u, value: vec4f) {
    let size = level_size(slot, shape, 0u);
    if exists(slot, shape, texel, 0u, 0u, size) {
        put_words(texels, format, place(slot, format, shape, texel, 0u, 0u, size), encode_float(format, value));
    }
}

fn store_uint(texels: ptr<storage, array<u32>, read_write>, slot: u32, format: u32, shape: u32, texel: vec3u, value: vec4u) {
    let size = level_size(slot, shape, 0u);
    if exists(slot, shape, texel, 0u, 0u, size) {
        put_words(texels, format, place(slot, format, shape, texel, 0u, 0u, size), encode_uint(format, value));
    }
}

fn store_sint(texels: ptr<storage, array<u32>, read_write>, slot: u32, format: u32, shape: u32, texel: vec3u, value: vec4i) {
    let size = level_size(slot, shape, 0u);
    if exists(slot, shape, texel, 0u, 0u, size) {
        put_words(texels, format, place(slot, format, shape, texel, 0u, 0u, size), encode_sint(format, value));
    }
}

// Samples.

fn compares(function: u32, reference: f32, depth: f32) -> f32 {
    if function == 1u {
        return 0.0;
    }
    if function == 2u {
        return select(0.0, 1.0, reference < depth);
    }
    if function == 3u {
        return select(0.0, 1.0, reference == depth);
    }
    if function == 4u {
        return select(0.0, 1.0, reference <= depth);
    }
    if function == 5u {
        return select(0.0, 1.0, reference > depth);
    }
    if function == 6u {
        return select(0.0, 1.0, reference != depth);
    }
    if function == 7u {
        return select(0.0, 1.0, reference >= depth);
    }
    return 1.0;
}

// A texel that exists, compared where the sampler compares.
fn tap(texels: ptr<storage, array<u32>, read_write>, slot: u32, format: u32, shape: u32, modes: u32, texel: vec3i, level: u32, reference: f32) -> vec4f {
    let value = decode_float(format, load_words(texels, slot, format, shape, vec3u(texel), 0u, level));
    if ((modes >> 9u) & 15u) != 0u {
        var bound = reference;
        if (format & 15u) == UNORM {
            bound = saturate(reference);
        }
        return vec4f(compares((modes >> 9u) & 15u, bound, value.x));
    }
    return value;
}

// A coordinate brought near the texture, by whole periods.
fn folded(mode: u32, coordinate: f32) -> f32 {
    if mode == REPEAT {
        return coordinate - floor(coordinate);
    }
    if mode == MIRROR {
        return coordinate - 2.0 * floor(coordinate * 0.5);
    }
    return coordinate;
}

// The texel that stands for the one at an index. Without an offset the index is at most one beyond a period.
fn wrapped(mode: u32, modes: u32, index: i32, size: i32) -> i32 {
    if mode == REPEAT {
        if (modes & OFFSET) == 0u {
            return select(select(index, index - size, index >= size), index + size, index < 0i);
        }
        return ((index % size) + size) % size;
    }
    if mode == MIRROR {
        if (modes & OFFSET) == 0u {
            return clamp(select(index, 2i * size - 1i - index, index >= size), 0i, size - 1i);
        }
        let turned = ((index % (2i * size)) + 2i * size) % (2i * size);
        return min(turned, 2i * size - 1i - turned);
    }
    return clamp(index, 0i, size - 1i);
}

fn wrapped_texel(modes: u32, texel: vec3i, size: vec3i) -> vec3i {
    return vec3i(
        wrapped(modes & 3u, modes, texel.x, size.x),
        wrapped((modes >> 2u) & 3u, modes, texel.y, size.y),
        wrapped((modes >> 4u) & 3u, modes, texel.z, size.z));
}

// An integer that no further sum overflows: NaN and what is far out are at an edge.
fn bounded(coordinate: vec3f) -> vec3f {
    return clamp(coordinate, vec3f(-1.0e9), vec3f(1.0e9));
}

fn nearest(texels: ptr<storage, array<u32>, read_write>, slot: u32, format: u32, shape: u32, modes: u32, coordinate: vec3f, layer: i32, offset: vec3i, level: u32, reference: f32) -> vec4f {
    let size = vec3i(level_size(slot, shape, level));
    if (shape & 3u) == 3u {
        let at = vec3i(floor(bounded(coordinate * vec3f(size)))) + offset;
        return tap(texels, slot, format, shape, modes, wrapped_texel(modes, at, size), level, reference);
    }
    let at = vec3i(floor(bounded(vec3f(coordinate.xy * vec2f(size.xy), 0.0)))) + offset;
    let x = wrapped(modes & 3u, modes, at.x, size.x);
    if (shape & 3u) == 1u {
        return tap(texels, slot, format, shape, modes, vec3i(x, 0i, 0i), level, reference);
    }
    let y = wrapped((modes >> 2u) & 3u, modes, at.y, size.y);
    return tap(texels, slot, format, shape, modes, vec3i(x, y, layer), level, reference);
}

fn linear(texels: ptr<storage, array<u32>, read_write>, slot: u32, format: u32, shape: u32, modes: u32, coordinate: vec3f, layer: i32, offset: vec3i, level: u32, reference: f32) -> vec4f {
    let size = vec3i(level_size(slot, shape, level));
    if (shape & 3u) == 2u {
        let centred = bounded(vec3f(coordinate.xy * vec2f(size.xy) - 0.5, 0.0)).xy;
        let low = floor(centred);
        let first = vec2i(low) + offset.xy;
        let corners = vec4i(
            wrapped(modes & 3u, modes, first.x, size.x),
            wrapped((modes >> 2u) & 3u, modes, first.y, size.y),
            wrapped(modes & 3u, modes, first.x + 1i, size.x),
            wrapped((modes >> 2u) & 3u, modes, first.y + 1i, size.y));
        return four(texels, slot, format, shape, modes, corners, layer, centred - low, level, reference);
    }
    let centred = bounded(coordinate * vec3f(size) - 0.5);
    let low = floor(centred);
    let part = centred - low;
    let first = vec3i(low) + offset;
    let x0 = wrapped(modes & 3u, modes, first.x, size.x);
    let x1 = wrapped(modes & 3u, modes, first.x + 1i, size.x);
    if (shape & 3u) == 1u {
        let left = tap(texels, slot, format, shape, modes, vec3i(x0, 0i, 0i), level, reference);
        let right = tap(texels, slot, format, shape, modes, vec3i(x1, 0i, 0i), level, reference);
        return between(format, left, right, part.x);
    }
    let y0 = wrapped((modes >> 2u) & 3u, modes, first.y, size.y);
    let y1 = wrapped((modes >> 2u) & 3u, modes, first.y + 1i, size.y);
    let z0 = wrapped((modes >> 4u) & 3u, modes, first.z, size.z);
    let z1 = wrapped((modes >> 4u) & 3u, modes, first.z + 1i, size.z);
    let near = four(texels, slot, format, shape, modes, vec4i(x0, y0, x1, y1), z0, part.xy, level, reference);
    let far = four(texels, slot, format, shape, modes, vec4i(x0, y0, x1, y1), z1, part.xy, level, reference);
    return between(format, near, far, part.z);
}

// What is at an end is exact, whatever is at the other: floats may be infinite.
fn between(format: u32, a: vec4f, b: vec4f, part: f32) -> vec4f {
    if (format & 15u) == FLOAT {
        return select(a * (1.0 - part) + b * part, a, part == 0.0);
    }
    return a * (1.0 - part) + b * part;
}

fn four(texels: ptr<storage, array<u32>, read_write>, slot: u32, format: u32, shape: u32, modes: u32, corners: vec4i, layer: i32, part: vec2f, level: u32, reference: f32) -> vec4f {
    let a = tap(texels, slot, format, shape, modes, vec3i(corners.x, corners.y, layer), level, reference);
    let b = tap(texels, slot, format, shape, modes, vec3i(corners.z, corners.y, layer), level, reference);
    let c = tap(texels, slot, format, shape, modes, vec3i(corners.x, corners.w, layer), level, reference);
    let d = tap(texels, slot, format, shape, modes, vec3i(corners.z, corners.w, layer), level, reference);
    return between(format, between(format, a, b, part.x), between(format, c, d, part.x), part.y);
}

// Cubes: the faces are +x, -x, +y, -y, +z, -z.

// s and t on the face that a direction points to, -1 to 1, and the face.
fn on_face(direction: vec3f) -> vec3f {
    let size = abs(direction);
    if size.z >= size.x {
        if size.z >= size.y {
            let turn = select(1.0, -1.0, direction.z < 0.0);
            return vec3f(turn * direction.x / size.z, -direction.y / size.z, select(4.0, 5.0, direction.z < 0.0));
        }
    }
    if size.y >= size.x {
        let turn = select(1.0, -1.0, direction.y < 0.0);
        return vec3f(direction.x / size.y, turn * direction.z / size.y, select(2.0, 3.0, direction.y < 0.0));
    }
    let turn = select(1.0, -1.0, direction.x < 0.0);
    return vec3f(-turn * direction.z / size.x, -direction.y / size.x, select(0.0, 1.0, direction.x < 0.0));
}

fn direction_of(s: f32, t: f32, face: i32) -> vec3f {
    if face == 0i {
        return vec3f(1.0, -t, -s);
    }
    if face == 1i {
        return vec3f(-1.0, -t, s);
    }
    if face == 2i {
        return vec3f(s, 1.0, t);
    }
    if face == 3i {
        return vec3f(s, -1.0, -t);
    }
    if face == 4i {
        return vec3f(s, -t, 1.0);
    }
    return vec3f(-s, -t, -1.0);
}

// The texel of a cube that lies at x and y on a face's plane, at most one beyond one edge of it.
fn around_edge(x: i32, y: i32, face: i32, size: i32) -> vec3i {
    if min(x, y) >= 0i {
        if max(x, y) < size {
            return vec3i(x, y, face);
        }
    }
    let s = (2.0 * f32(x) + 1.0) / f32(size) - 1.0;
    let t = (2.0 * f32(y) + 1.0) / f32(size) - 1.0;
    let there = on_face(direction_of(s, t, face));
    let at = vec2i(floor((there.xy * 0.5 + 0.5) * f32(size)));
    return vec3i(clamp(at, vec2i(), vec2i(size - 1i)), i32(there.z));
}

fn cube_tap(texels: ptr<storage, array<u32>, read_write>, slot: u32, format: u32, shape: u32, modes: u32, at: vec2i, face: i32, cube: i32, size: i32, level: u32, reference: f32) -> vec4f {
    let inner = clamp(at, vec2i(), vec2i(size - 1i));
    if at.x != inner.x {
        if at.y != inner.y {
            // Three faces meet at a corner, and there is no fourth texel.
            let a = around_edge(inner.x, inner.y, face, size) + vec3i(0i, 0i, 6i * cube);
            let b = around_edge(at.x, inner.y, face, size) + vec3i(0i, 0i, 6i * cube);
            let c = around_edge(inner.x, at.y, face, size) + vec3i(0i, 0i, 6i * cube);
            return (tap(texels, slot, format, shape, modes, a, level, reference)
                + tap(texels, slot, format, shape, modes, b, level, reference)
                + tap(texels, slot, format, shape, modes, c, level, reference)) / 3.0;
        }
    }
    let there = around_edge(at.x, at.y, face, size) + vec3i(0i, 0i, 6i * cube);
    return tap(texels, slot, format, shape, modes, there, level, reference);
}

fn on_cube(texels: ptr<storage, array<u32>, read_write>, slot: u32, format: u32, shape: u32, modes: u32, is_linear: bool, there: vec3f, cube: i32, level: u32, reference: f32) -> vec4f {
    let size = i32(level_size(slot, shape, level).x);
    let face = i32(there.z);
    let scaled = (there.xy * 0.5 + 0.5) * f32(size);
    if is_linear {
        let centred = scaled - 0.5;
        let low = floor(centred);
        let part = centred - low;
        let at = vec2i(low);
        let a = cube_tap(texels, slot, format, shape, modes, at, face, cube, size, level, reference);
        let b = cube_tap(texels, slot, format, shape, modes, at + vec2i(1i, 0i), face, cube, size, level, reference);
        let c = cube_tap(texels, slot, format, shape, modes, at + vec2i(0i, 1i), face, cube, size, level, reference);
        let d = cube_tap(texels, slot, format, shape, modes, at + vec2i(1i, 1i), face, cube, size, level, reference);
        return between(format, between(format, a, b, part.x), between(format, c, d, part.x), part.y);
    }
    let at = clamp(vec2i(floor(scaled)), vec2i(), vec2i(size - 1i));
    return tap(texels, slot, format, shape, modes, vec3i(at, face + 6i * cube), level, reference);
}

// One level, filtered or not.
fn sample_at(texels: ptr<storage, array<u32>, read_write>, slot: u32, format: u32, shape: u32, modes: u32, is_linear: bool, coordinate: vec3f, layer: i32, offset: vec3i, level: u32, reference: f32) -> vec4f {
    if (shape & CUBE) != 0u {
        return on_cube(texels, slot, format, shape, modes, is_linear, coordinate, layer, level, reference);
    }
    if is_linear {
        return linear(texels, slot, format, shape, modes, coordinate, layer, offset, level, reference);
    }
    return nearest(texels, slot, format, shape, modes, coordinate, layer, offset, level, reference);
}

fn sample_one(texels: ptr<storage, array<u32>, read_write>, slot: u32, format: u32, shape: u32, modes: u32, lod: f32, coordinate: vec3f, layer: i32, offset: vec3i, level: u32, reference: f32) -> vec4f {
    if (modes & MAG_LINEAR) == 0u {
        if (modes & MIN_LINEAR) == 0u {
            return sample_at(texels, slot, format, shape, modes, false, coordinate, layer, offset, level, reference);
        }
        if lod > 0.0 {
            return sample_at(texels, slot, format, shape, modes, true, coordinate, layer, offset, level, reference);
        }
        return sample_at(texels, slot, format, shape, modes, false, coordinate, layer, offset, level, reference);
    }
    if (modes & MIN_LINEAR) != 0u {
        return sample_at(texels, slot, format, shape, modes, true, coordinate, layer, offset, level, reference);
    }
    if lod > 0.0 {
        return sample_at(texels, slot, format, shape, modes, false, coordinate, layer, offset, level, reference);
    }
    return sample_at(texels, slot, format, shape, modes, true, coordinate, layer, offset, level, reference);
}

// The layer that a kernel asks for, cubes counted as one.
fn clamped_layer(slot: u32, shape: u32, layer: i32) -> i32 {
    return clamp(layer, 0i, i32(layer_count(slot, shape)) - 1i);
}

fn settled(shape: u32, modes: u32, coordinate: vec3f) -> vec3f {
    if (shape & CUBE) != 0u {
        return on_face(coordinate);
    }
    return vec3f(
        folded(modes & 3u, coordinate.x),
        folded((modes >> 2u) & 3u, coordinate.y),
        folded((modes >> 4u) & 3u, coordinate.z));
}

fn sample_level(texels: ptr<storage, array<u32>, read_write>, slot: u32, sampler_slot: u32, format: u32, shape: u32, modes: u32, coordinate: vec3f, layer: i32, offset: vec3i, lod: f32, reference: f32) -> vec4f {
    let there = settled(shape, modes, coordinate);
    let clamped = clamp(lod, bitcast<f32>(cantus_textures[sampler_slot].x), bitcast<f32>(cantus_textures[sampler_slot].y));
    if (shape & LEVELS) == 0u {
        return sample_one(texels, slot, format, shape, modes, clamped, there, layer, offset, 0u, reference);
    }
    let last = f32(cantus_textures[slot].w - 1u);
    let exact = clamp(clamped, 0.0, last);
    if (modes & MIP_LINEAR) == 0u {
        let level = u32(ceil(exact + 0.5)) - 1u;
        return sample_one(texels, slot, format, shape, modes, clamped, there, layer, offset, min(level, u32(last)), reference);
    }
    let low = floor(exact);
    let fine = sample_one(texels, slot, format, shape, modes, clamped, there, layer, offset, u32(low), reference);
    let next = min(u32(low) + 1u, u32(last));
    let coarse = sample_one(texels, slot, format, shape, modes, clamped, there, layer, offset, next, reference);
    return between(format, fine, coarse, exact - low);
}

// The level of detail for how far a step to the neighbours reaches, in texels of level 0.
fn detail(slot: u32, shape: u32, coordinate: vec3f, along_x: vec3f, along_y: vec3f) -> f32 {
    let size = vec3f(level_size(slot, shape, 0u));
    if (shape & CUBE) != 0u {
        let steps = max(dot_on_face(coordinate, along_x), dot_on_face(coordinate, along_y));
        return log2(steps * 0.5 * size.x);
    }
    if (shape & 3u) == 3u {
        return log2(max(length(along_x * size), length(along_y * size)));
    }
    if (shape & 3u) == 2u {
        return log2(max(length(along_x.xy * size.xy), length(along_y.xy * size.xy)));
    }
    return log2(max(abs(along_x.x * size.x), abs(along_y.x * size.x)));
}

// How far s and t on a face move with a direction.
fn dot_on_face(direction: vec3f, step: vec3f) -> f32 {
    let size = abs(direction);
    var axes = direction.yzx;
    var moved = step.yzx;
    if max(size.x, size.y) <= size.z {
        axes = direction;
        moved = step;
    } else if size.x <= size.y {
        axes = direction.zxy;
        moved = step.zxy;
    }
    // The quotient's derivative: (a / m)' = (a' m - a m') / m^2.
    let turned = (moved.xy * axes.z - axes.xy * moved.z) / (axes.z * axes.z);
    return length(turned);
}

fn sample_grad(texels: ptr<storage, array<u32>, read_write>, slot: u32, sampler_slot: u32, format: u32, shape: u32, modes: u32, coordinate: vec3f, layer: i32, offset: vec3i, along_x: vec3f, along_y: vec3f, reference: f32) -> vec4f {
    let lod = detail(slot, shape, coordinate, along_x, along_y);
    return sample_level(texels, slot, sampler_slot, format, shape, modes, coordinate, layer, offset, lod, reference);
}

// Level 0, half a texel inside, whatever the sampler does at edges.
fn sample_clamped(texels: ptr<storage, array<u32>, read_write>, slot: u32, sampler_slot: u32, format: u32, shape: u32, modes: u32, coordinate: vec3f) -> vec4f {
    let half_texel = 0.5 / vec2f(cantus_textures[slot].xy);
    let inside = vec3f(clamp(coordinate.xy, half_texel, 1.0 - half_texel), 0.0);
    let lod = clamp(0.0, bitcast<f32>(cantus_textures[sampler_slot].x), bitcast<f32>(cantus_textures[sampler_slot].y));
    return sample_one(texels, slot, format, shape, modes & ~63u, lod, inside, 0i, vec3i(), 0u, 0.0);
}

// The four texels that a linear filter would weigh at level 0: lower left, lower right, upper right, upper left.
fn gathered(slot: u32, shape: u32, modes: u32, coordinate: vec3f, layer: i32, offset: vec3i, which: u32) -> vec3i {
    let size = vec3i(level_size(slot, shape, 0u));
    let step = vec2i(vec2u(which ^ (which >> 1u), ((which >> 1u) ^ 1u)) & vec2u(1u));
    if (shape & CUBE) != 0u {
        let there = on_face(coordinate);
        let low = vec2i(floor((there.xy * 0.5 + 0.5) * f32(size.x) - 0.5)) + step;
        let inner = clamp(low, vec2i(), vec2i(size.x - 1i));
        // At a corner, the texel of this face.
        let at = select(low, inner, vec2<bool>(all(low != inner)));
        return around_edge(at.x, at.y, i32(there.z), size.x) + vec3i(0i, 0i, 6i * layer);
    }
    let there = settled(shape, modes, coordinate);
    let low = vec2i(floor(bounded(vec3f(there.xy * vec2f(size.xy) - 0.5, 0.0)).xy)) + offset.xy + step;
    return vec3i(
        wrapped(modes & 3u, modes, low.x, size.x),
        wrapped((modes >> 2u) & 3u, modes, low.y, size.y),
        layer);
}

fn gather_float(texels: ptr<storage, array<u32>, read_write>, slot: u32, format: u32, shape: u32, modes: u32, component: u32, coordinate: vec3f, layer: i32, offset: vec3i, reference: f32) -> vec4f {
    return vec4f(
        tap(texels, slot, format, shape, modes, gathered(slot, shape, modes, coordinate, layer, offset, 0u), 0u, reference)[component],
        tap(texels, slot, format, shape, modes, gathered(slot, shape, modes, coordinate, layer, offset, 1u), 0u, reference)[component],
        tap(texels, slot, format, shape, modes, gathered(slot, shape, modes, coordinate, layer, offset, 2u), 0u, reference)[component],
        tap(texels, slot, format, shape, modes, gathered(slot, shape, modes, coordinate, layer, offset, 3u), 0u, reference)[component]);
}

fn gather_words(texels: ptr<storage, array<u32>, read_write>, slot: u32, format: u32, shape: u32, modes: u32, coordinate: vec3f, layer: i32, offset: vec3i, which: u32) -> vec4u {
    let at = gathered(slot, shape, modes, coordinate, layer, offset, which);
    return load_words(texels, slot, format, shape, vec3u(at), 0u, 0u);
}

fn gather_uint(texels: ptr<storage, array<u32>, read_write>, slot: u32, format: u32, shape: u32, modes: u32, component: u32, coordinate: vec3f, layer: i32, offset: vec3i) -> vec4u {
    return vec4u(
        decode_uint(format, gather_words(texels, slot, format, shape, modes, coordinate, layer, offset, 0u))[component],
        decode_uint(format, gather_words(texels, slot, format, shape, modes, coordinate, layer, offset, 1u))[component],
        decode_uint(format, gather_words(texels, slot, format, shape, modes, coordinate, layer, offset, 2u))[component],
        decode_uint(format, gather_words(texels, slot, format, shape, modes, coordinate, layer, offset, 3u))[component]);
}

fn gather_sint(texels: ptr<storage, array<u32>, read_write>, slot: u32, format: u32, shape: u32, modes: u32, component: u32, coordinate: vec3f, layer: i32, offset: vec3i) -> vec4i {
    return vec4i(
        decode_sint(format, gather_words(texels, slot, format, shape, modes, coordinate, layer, offset, 0u))[component],
        decode_sint(format, gather_words(texels, slot, format, shape, modes, coordinate, layer, offset, 1u))[component],
        decode_sint(format, gather_words(texels, slot, format, shape, modes, coordinate, layer, offset, 2u))[component],
        decode_sint(format, gather_words(texels, slot, format, shape, modes, coordinate, layer, offset, 3u))[component]);
}
