//! Running sums of float32 in float64, and of 64-bit integers, a vector at a time: within a vector pairs, then fours, each add the sum of the values before them (Sklansky,
//! 1960), so that only one addition in each waits for the one before.

#[cfg(target_arch = "x86_64")]
use cantus_base::instructions::InstructionSet;

/// Writes each value's sum with `start` and those before it to `to`, and gives the whole sum.
///
/// # Safety
/// As many values may be written there, and nothing else touches them.
pub(super) unsafe fn sums(start: f64, values: &[f32], to: *mut f32) -> f64 {
    #[cfg(target_arch = "x86_64")]
    match InstructionSet::best() {
        // SAFETY: the processor has the set, and `to` has room for the values (this function's contract).
        InstructionSet::Avx512 => return unsafe { x86::avx512(start, values, to) },
        // SAFETY: the processor has the set, and `to` has room for the values (this function's contract).
        InstructionSet::Avx2 => return unsafe { x86::avx2(start, values, to) },
        InstructionSet::Baseline => {}
    }
    // SAFETY: `to` has room for the values (this function's contract).
    unsafe { plain(start, values, to) }
}

/// [`sums`] of integers, which wrap.
///
/// # Safety
/// As [`sums`].
pub(super) unsafe fn whole_sums(start: u64, values: &[u64], to: *mut u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    match InstructionSet::best() {
        // SAFETY: the processor has the set, and `to` has room for the values (this function's contract).
        InstructionSet::Avx512 => return unsafe { x86::whole_avx512(start, values, to) },
        // SAFETY: the processor has the set, and `to` has room for the values (this function's contract).
        InstructionSet::Avx2 => return unsafe { x86::whole_avx2(start, values, to) },
        InstructionSet::Baseline => {}
    }
    // SAFETY: `to` has room for the values (this function's contract).
    unsafe { whole_plain(start, values, to) }
}

/// Computes the sums of integers one by one.
///
/// # Safety
/// As [`sums`].
unsafe fn whole_plain(start: u64, values: &[u64], to: *mut u64) -> u64 {
    let mut sum = start;
    for (place, &value) in values.iter().enumerate() {
        sum = sum.wrapping_add(value);
        // SAFETY: `to` has room for the values (this function's contract).
        unsafe { to.add(place).write_unaligned(sum) };
    }
    sum
}

/// Computes the sums four at a time.
///
/// # Safety
/// As [`sums`].
unsafe fn plain(start: f64, values: &[f32], to: *mut f32) -> f64 {
    let (lines, rest) = values.as_chunks::<4>();
    let mut sum = start;
    for (line, &[a, b, c, d]) in lines.iter().enumerate() {
        let [a, b, c, d] = [a, b, c, d].map(f64::from);
        let two = a + b;
        let sums = [sum + a, sum + two, sum + (two + c), sum + (two + (c + d))];
        sum = sums[3];
        // SAFETY: `to` has room for the values, of which this is line number `line` (this function's contract).
        unsafe { to.cast::<[f32; 4]>().add(line).write_unaligned(sums.map(|sum| sum as f32)) };
    }
    for (place, &value) in rest.iter().enumerate() {
        sum += f64::from(value);
        // SAFETY: `to` has room for the values, of which this is one (this function's contract).
        unsafe { to.add(4 * lines.len() + place).write(sum as f32) };
    }
    sum
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// # Safety
    /// As [`super::sums`].
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
    pub(super) unsafe fn avx512(start: f64, values: &[f32], to: *mut f32) -> f64 {
        let (lines, rest) = values.as_chunks::<8>();
        let zeros = _mm512_setzero_pd();
        // By permutations, not shifts: compilers take those for expansions, which some processors do one lane at a time.
        let (second, fourth) = (_mm512_setr_epi64(0, 0, 1, 1, 0, 0, 5, 5), _mm512_set1_epi64(3));
        let last = _mm512_set1_epi64(7);
        let mut before = _mm512_set1_pd(start);
        for (place, line) in lines.iter().enumerate() {
            // SAFETY: a line is 8 floats, and as many are written.
            unsafe {
                let mut sums = _mm512_cvtps_pd(_mm256_loadu_ps(line.as_ptr()));
                sums = _mm512_add_pd(sums, _mm512_unpacklo_pd(zeros, sums));
                sums = _mm512_add_pd(sums, _mm512_maskz_permutexvar_pd(0b1100_1100, second, sums));
                sums = _mm512_add_pd(sums, _mm512_maskz_permutexvar_pd(0b1111_0000, fourth, sums));
                let all = _mm512_add_pd(sums, before);
                _mm256_storeu_ps(to.add(8 * place), _mm512_cvtpd_ps(all));
                before = _mm512_add_pd(before, _mm512_permutexvar_pd(last, sums));
            }
        }
        // SAFETY: `to` has room for the values (this function's contract), of which the lines are done.
        unsafe { super::plain(_mm512_cvtsd_f64(before), rest, to.add(8 * lines.len())) }
    }

    /// # Safety
    /// As [`super::sums`].
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
    pub(super) unsafe fn whole_avx512(start: u64, values: &[u64], to: *mut u64) -> u64 {
        let (lines, rest) = values.as_chunks::<8>();
        let zeros = _mm512_setzero_si512();
        let (second, fourth) = (_mm512_setr_epi64(0, 0, 1, 1, 0, 0, 5, 5), _mm512_set1_epi64(3));
        let last = _mm512_set1_epi64(7);
        let mut before = _mm512_set1_epi64(start.cast_signed());
        for (place, line) in lines.iter().enumerate() {
            // SAFETY: a line is 8 integers, and as many are written.
            unsafe {
                let mut sums = _mm512_loadu_epi64(line.as_ptr().cast());
                sums = _mm512_add_epi64(sums, _mm512_unpacklo_epi64(zeros, sums));
                sums = _mm512_add_epi64(sums, _mm512_maskz_permutexvar_epi64(0b1100_1100, second, sums));
                sums = _mm512_add_epi64(sums, _mm512_maskz_permutexvar_epi64(0b1111_0000, fourth, sums));
                _mm512_storeu_epi64(to.add(8 * place).cast(), _mm512_add_epi64(sums, before));
                before = _mm512_add_epi64(before, _mm512_permutexvar_epi64(last, sums));
            }
        }
        let before = _mm_cvtsi128_si64(_mm512_castsi512_si128(before)).cast_unsigned();
        // SAFETY: `to` has room for the values (this function's contract), of which the lines are done.
        unsafe { super::whole_plain(before, rest, to.add(8 * lines.len())) }
    }

    /// # Safety
    /// As [`super::sums`].
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn whole_avx2(start: u64, values: &[u64], to: *mut u64) -> u64 {
        let (lines, rest) = values.as_chunks::<4>();
        let zeros = _mm256_setzero_si256();
        let mut before = _mm256_set1_epi64x(start.cast_signed());
        for (place, line) in lines.iter().enumerate() {
            // SAFETY: a line is 4 integers, and as many are written.
            unsafe {
                let mut sums = _mm256_loadu_si256(line.as_ptr().cast());
                sums = _mm256_add_epi64(sums, _mm256_unpacklo_epi64(zeros, sums));
                let second = _mm256_permute4x64_epi64::<0b01_01_01_01>(sums);
                sums = _mm256_add_epi64(sums, _mm256_blend_epi32::<0b1111_0000>(zeros, second));
                _mm256_storeu_si256(to.add(4 * place).cast(), _mm256_add_epi64(sums, before));
                before = _mm256_add_epi64(before, _mm256_permute4x64_epi64::<0b11_11_11_11>(sums));
            }
        }
        let before = _mm_cvtsi128_si64(_mm256_castsi256_si128(before)).cast_unsigned();
        // SAFETY: `to` has room for the values (this function's contract), of which the lines are done.
        unsafe { super::whole_plain(before, rest, to.add(4 * lines.len())) }
    }

    /// # Safety
    /// As [`super::sums`].
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn avx2(start: f64, values: &[f32], to: *mut f32) -> f64 {
        let (lines, rest) = values.as_chunks::<4>();
        let zeros = _mm256_setzero_pd();
        let mut before = _mm256_set1_pd(start);
        for (place, line) in lines.iter().enumerate() {
            // SAFETY: a line is 4 floats, and as many are written.
            unsafe {
                let mut sums = _mm256_cvtps_pd(_mm_loadu_ps(line.as_ptr()));
                let one = _mm256_permute4x64_pd::<0b10_01_00_00>(sums);
                sums = _mm256_add_pd(sums, _mm256_blend_pd::<0b0001>(one, zeros));
                sums = _mm256_add_pd(sums, _mm256_permute2f128_pd::<0x08>(sums, sums));
                let all = _mm256_add_pd(sums, before);
                _mm_storeu_ps(to.add(4 * place), _mm256_cvtpd_ps(all));
                before = _mm256_add_pd(before, _mm256_permute4x64_pd::<0b11_11_11_11>(sums));
            }
        }
        // SAFETY: `to` has room for the values (this function's contract), of which the lines are done.
        unsafe { super::plain(_mm256_cvtsd_f64(before), rest, to.add(4 * lines.len())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_the_loop() {
        let values: Vec<f32> = (0..1037).map(|i| ((i * 7919) % 1009) as f32 * 0.01 - 5.0).collect();
        for length in (0..40).chain([1037]) {
            let mut sum = 0.25;
            let wanted: Vec<f32> =
                values[..length].iter().map(|&value| (sum += f64::from(value), sum as f32).1).collect();
            type Form = unsafe fn(f64, &[f32], *mut f32) -> f64;
            let mut forms: Vec<(&str, Form)> = vec![("plain", plain), ("best", sums)];
            #[cfg(target_arch = "x86_64")]
            {
                if InstructionSet::Avx2.is_there() {
                    // SAFETY: the processor has it.
                    forms.push(("avx2", |start, values, to| unsafe { x86::avx2(start, values, to) }));
                }
                if InstructionSet::Avx512.is_there() {
                    // SAFETY: the processor has it.
                    forms.push(("avx512", |start, values, to| unsafe { x86::avx512(start, values, to) }));
                }
            }
            for (name, form) in forms {
                let mut got = vec![0.0; length];
                // SAFETY: there are as many.
                let all = unsafe { form(0.25, &values[..length], got.as_mut_ptr()) };
                assert!((all - sum).abs() < 1e-9, "{name} {length}");
                for (got, wanted) in got.iter().zip(&wanted) {
                    assert!((got - wanted).abs() <= wanted.abs() * 1e-7, "{name} {length}: {got}, not {wanted}");
                }
            }
        }
    }

    #[test]
    fn every_form_adds_integers() {
        let values: Vec<u64> = (0..1037_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        for length in (0..40).chain([1037]) {
            let mut sum = 3_u64;
            let wanted: Vec<u64> =
                values[..length].iter().map(|&value| (sum = sum.wrapping_add(value), sum).1).collect();
            type Form = unsafe fn(u64, &[u64], *mut u64) -> u64;
            let mut forms: Vec<(&str, Form)> = vec![("plain", whole_plain), ("best", whole_sums)];
            #[cfg(target_arch = "x86_64")]
            {
                if InstructionSet::Avx2.is_there() {
                    // SAFETY: the processor has it.
                    forms.push(("avx2", |start, values, to| unsafe { x86::whole_avx2(start, values, to) }));
                }
                if InstructionSet::Avx512.is_there() {
                    // SAFETY: the processor has it.
                    forms.push(("avx512", |start, values, to| unsafe { x86::whole_avx512(start, values, to) }));
                }
            }
            for (name, form) in forms {
                let mut got = vec![0; length];
                // SAFETY: there are as many.
                let all = unsafe { form(3, &values[..length], got.as_mut_ptr()) };
                assert_eq!((all, &got), (sum, &wanted), "{name} {length}");
            }
        }
    }
}
