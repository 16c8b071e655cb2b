//! Colours as texels: what a render pass clears to.

use cantus_base::texture::{ChannelType, Packing, TextureFormat};
use half::f16;

/// Returns a colour (red, green, blue, alpha) as the words of a texel.
pub(crate) fn encode(format: TextureFormat, colour: [f64; 4]) -> [u32; 4] {
    let mut channels = colour;
    if format.is_srgb() {
        channels.iter_mut().take(3).for_each(|channel| *channel = encoded(*channel));
    }
    if format.is_bgra() {
        channels.swap(0, 2);
    }
    let kind = format.channel_type();
    match format.packing() {
        Packing::Channels(bits) => {
            let mut words = [0_u32; 4];
            for (place, channel) in (0..format.channels()).zip(channels) {
                let bit = place * bits;
                if let Some(word) = words.get_mut((bit / 32) as usize) {
                    *word |= number(kind, bits, channel) << (bit % 32);
                }
            }
            words
        }
        Packing::Rgb10a2 => {
            let of = |bits: u32, channel: f64| number(kind, bits, channel);
            let [r, g, b, a] = channels;
            [of(10, r) | of(10, g) << 10 | of(10, b) << 20 | of(2, a) << 30, 0, 0, 0]
        }
        Packing::Rg11b10 => {
            // Floats with the exponent of f16 and no sign: the highest bits of one, cut as drivers do.
            let cut = |channel: f64, bits: u32| {
                (u32::from(f16::from_f64(channel.max(0.0)).to_bits()) & 0x7fff) >> (15 - bits)
            };
            let [r, g, b, _] = channels;
            [cut(r, 11) | cut(g, 11) << 11 | cut(b, 10) << 22, 0, 0, 0]
        }
        // No format of attachments.
        Packing::Rgb9e5 => [0; 4],
    }
}

/// A channel as the lowest bits of a word.
fn number(kind: ChannelType, bits: u32, channel: f64) -> u32 {
    let mask = u32::MAX >> (32 - bits);
    // NaN becomes zero, as casts have it.
    match kind {
        ChannelType::Unorm => (channel.clamp(0.0, 1.0) * f64::from(mask)).round() as u32,
        ChannelType::Snorm => ((channel.clamp(-1.0, 1.0) * f64::from(mask >> 1)).round() as i32).cast_unsigned() & mask,
        ChannelType::Uint => (channel as u32).min(mask),
        ChannelType::Sint => {
            let most = (mask >> 1).cast_signed();
            (channel as i32).clamp(-most - 1, most).cast_unsigned() & mask
        }
        ChannelType::Float if bits == 16 => f16::from_f64(channel).to_bits().into(),
        ChannelType::Float => (channel as f32).to_bits(),
    }
}

/// Light by sRGB's transfer function.
fn encoded(light: f64) -> f64 {
    if light <= 0.003_130_8 { 12.92 * light } else { 1.055 * light.powf(1.0 / 2.4) - 0.055 }
}

#[cfg(test)]
mod tests {
    use super::encode;
    use cantus_base::texture::TextureFormat as Format;

    #[test]
    fn colours_are_packed() {
        let colour = [1.0, 0.5, -1.0, 0.25];
        assert_eq!(encode(Format::Rgba8Unorm, colour)[0], 0x40_00_80_ff);
        assert_eq!(encode(Format::Bgra8Unorm, colour)[0], 0x40_ff_80_00);
        // 0.5 of light is 188 of 255.
        assert_eq!(encode(Format::Rgba8UnormSrgb, colour)[0], 0x40_00_bc_ff);
        assert_eq!(encode(Format::Rgba8Snorm, colour)[0], 0x20_81_40_7f);
        assert_eq!(encode(Format::Rgba16Float, colour)[..2], [0x3800_3c00, 0x3400_bc00]);
        assert_eq!(encode(Format::R32Float, colour), [1.0_f32.to_bits(), 0, 0, 0]);
        assert_eq!(encode(Format::Rgb10a2Unorm, colour)[0], 1023 | 512 << 10 | 1 << 30);
        assert_eq!(encode(Format::Rg11b10Ufloat, [1.0, 2.0, 0.5, 0.0])[0], 0x3c0 | 0x400 << 11 | 0x1c0 << 22);
        assert_eq!(encode(Format::Rgba32Sint, [7.0, -7.0, 2e9, 1.0]), [7, -7_i32 as u32, 2_000_000_000, 1]);
        assert_eq!(encode(Format::Rgba8Sint, [-200.0, 200.0, -1.0, 1.0])[0], 0x01_ff_7f_80);
    }
}
