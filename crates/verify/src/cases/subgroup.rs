//! Subgroup operations. The size of a subgroup, and which invocations share one, are the device's choice: the kernel
//! writes down who was where, and the oracle works on the groups so read back.

use std::collections::BTreeMap;

use crate::case::{Case, Values};
use crate::inputs::words;

pub fn cases() -> Vec<Case> {
    let mut cases = vec![identity()];
    cases.extend(operations());
    cases
}

const N: usize = 192;

/// An invocation's view: the values of its subgroup by lane, its own lane, and the subgroup's size.
struct View<'a> {
    values: &'a BTreeMap<u32, u32>,
    lane: u32,
    size: u32,
}

impl View<'_> {
    fn fold(&self, f: impl Fn(u32, u32) -> u32) -> Option<u32> {
        self.values.values().copied().reduce(f)
    }

    fn before(&self, start: u32, f: impl Fn(u32, u32) -> u32) -> u32 {
        self.values.range(..self.lane).fold(start, |s, (_, &x)| f(s, x))
    }

    /// The value in another lane, if there is such a lane: what comes from one that is not there is undefined.
    fn at(&self, lane: Option<u32>) -> Option<u32> {
        lane.and_then(|lane| self.values.get(&lane).copied())
    }

    fn own(&self) -> u32 {
        self.values[&self.lane]
    }
}

/// An oracle gives the expected value, or nothing where WGSL leaves it open.
type Oracle = fn(&View<'_>) -> Option<u32>;

fn operations() -> Vec<Case> {
    let table: [(&str, &str, Oracle); 30] = [
        ("add", "subgroupAdd(v)", |s| s.fold(u32::wrapping_add)),
        ("mul", "subgroupMul(v)", |s| s.fold(u32::wrapping_mul)),
        ("min", "subgroupMin(v)", |s| s.fold(u32::min)),
        ("max", "subgroupMax(v)", |s| s.fold(u32::max)),
        ("and", "subgroupAnd(v)", |s| s.fold(|a, b| a & b)),
        ("or", "subgroupOr(v)", |s| s.fold(|a, b| a | b)),
        ("xor", "subgroupXor(v)", |s| s.fold(|a, b| a ^ b)),
        ("min_i32", "bitcast<u32>(subgroupMin(bitcast<i32>(v)))", |s| s.fold(|a, b| (a as i32).min(b as i32) as u32)),
        ("max_i32", "bitcast<u32>(subgroupMax(bitcast<i32>(v)))", |s| s.fold(|a, b| (a as i32).max(b as i32) as u32)),
        // Whole numbers below 2^8, at most 128 of them: exact in float32.
        ("add_f32", "u32(subgroupAdd(f32(v & 255u)))", |s| Some(s.values.values().map(|v| v & 255).sum())),
        ("add_vec3", "dot(subgroupAdd(vec3u(v, 1u, v >> 16u)), vec3u(1u, 10u, 100u))", |s| {
            let sum = s.fold(u32::wrapping_add)?;
            let high: u32 = s.values.values().map(|v| v >> 16).sum();
            Some(sum.wrapping_add(s.values.len() as u32 * 10).wrapping_add(high.wrapping_mul(100)))
        }),
        ("inclusive_add", "subgroupInclusiveAdd(v)", |s| Some(s.before(s.own(), u32::wrapping_add))),
        ("exclusive_add", "subgroupExclusiveAdd(v)", |s| Some(s.before(0, u32::wrapping_add))),
        ("inclusive_mul", "subgroupInclusiveMul(v)", |s| Some(s.before(s.own(), u32::wrapping_mul))),
        ("exclusive_mul", "subgroupExclusiveMul(v)", |s| Some(s.before(1, u32::wrapping_mul))),
        ("all_any", "u32(subgroupAll((v & 0xFFFu) != 0u)) + 2u * u32(subgroupAny((v & 7u) == 0u))", |s| {
            let all = s.values.values().all(|v| v & 0xFFF != 0);
            let any = s.values.values().any(|v| v & 7 == 0);
            Some(u32::from(all) + 2 * u32::from(any))
        }),
        ("ballot", "(subgroupBallot((v & 1u) == 1u))[lane / 32u]", |s| {
            let word = s.values.iter().filter(|(lane, _)| **lane / 32 == s.lane / 32);
            Some(word.map(|(lane, v)| (v & 1) << (lane % 32)).sum())
        }),
        (
            "ballot_unused_words",
            "countOneBits(subgroupBallot(true).x | subgroupBallot().y) + subgroupBallot(false).w",
            |s| (s.size <= 32).then_some(s.values.len() as u32),
        ),
        ("broadcast", "subgroupBroadcast(v, 2u)", |s| s.at(Some(2))),
        ("broadcast_by_signed", "subgroupBroadcast(v, 2)", |s| s.at(Some(2))),
        ("shuffle_by_signed", "subgroupShuffle(v, i32((lane * 3u + 1u) % size))", |s| {
            s.at(Some((s.lane * 3 + 1) % s.size))
        }),
        ("quad_broadcast_by_signed", "quadBroadcast(v, SECOND)", |s| s.at(Some(s.lane / 4 * 4 + 2))),
        ("elect", "u32(subgroupElect())", |s| s.values.keys().next().map(|first| u32::from(*first == s.lane))),
        ("broadcast_first", "subgroupBroadcastFirst(v)", |s| s.values.values().next().copied()),
        ("shuffle", "subgroupShuffle(v, (lane * 3u + 1u) % size)", |s| s.at(Some((s.lane * 3 + 1) % s.size))),
        ("shuffle_up_down", "subgroupShuffleDown(v, 2u) ^ subgroupShuffleUp(v, 1u)", |s| {
            Some(s.at(Some(s.lane + 2))? ^ s.at(s.lane.checked_sub(1))?)
        }),
        ("shuffle_xor", "subgroupShuffleXor(v, 3u)", |s| s.at(Some(s.lane ^ 3))),
        ("quad_broadcast", "quadBroadcast(v, 2u)", |s| s.at(Some(s.lane / 4 * 4 + 2))),
        ("quad_swap_x_y", "quadSwapX(v) * 3u + quadSwapY(v)", |s| {
            Some(s.at(Some(s.lane ^ 1))?.wrapping_mul(3).wrapping_add(s.at(Some(s.lane ^ 2))?))
        }),
        ("quad_swap_diagonal", "quadSwapDiagonal(v)", |s| s.at(Some(s.lane ^ 3))),
    ];
    let mut cases: Vec<Case> =
        table.map(|(name, expression, oracle)| case(name, &format!("out[i] = {expression};"), oracle)).into();
    cases.push(case(
        "in_uniform_loop",
        "var x = v; for (var k = 0u; k < 3u; k++) { x = subgroupAdd(x) + lane; } out[i] = x;",
        |s| {
            let mut values: Vec<(u32, u32)> = s.values.iter().map(|(&lane, &v)| (lane, v)).collect();
            for _ in 0..3 {
                let sum = values.iter().fold(0_u32, |sum, (_, v)| sum.wrapping_add(*v));
                values.iter_mut().for_each(|(lane, v)| *v = sum.wrapping_add(*lane));
            }
            values.iter().find(|(lane, _)| *lane == s.lane).map(|&(_, v)| v)
        },
    ));
    cases.push(
        case("barrier", "shared_values[i % 64u] = v; subgroupBarrier(); out[i] = shared_values[i % 64u] + 1u;", |s| {
            Some(s.own().wrapping_add(1))
        })
        .needs(|n| n.subgroup_barrier = true),
    );
    cases
}

fn case(name: &str, statements: &str, oracle: Oracle) -> Case {
    let a = words(170, N);
    let body = format!(
        "const SECOND: i32 = 2;\nvar<workgroup> shared_values: array<u32, 64>;\n\
         @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u, @builtin(subgroup_size) size: u32, \
         @builtin(subgroup_invocation_id) lane: u32) {{\n let i = id.x; let v = a[i];\n \
         places[i] = vec4u(subgroupBroadcastFirst(i), lane, size, 1u);\n {statements}\n}}"
    );
    let values = a.clone();
    let check = move |finals: &[Values]| {
        let (places, out) = (finals[1].u32s(), finals[2].u32s());
        let mut groups: BTreeMap<u32, BTreeMap<u32, u32>> = BTreeMap::new();
        for (place, &value) in places.chunks(4).zip(&values) {
            if place[3] != 1 || place[1] >= place[2] || !(4..=128).contains(&place[2]) {
                return Err(format!("an invocation wrote down {place:?} as first of its subgroup, lane, size, mark"));
            }
            if groups.entry(place[0]).or_default().insert(place[1], value).is_some() {
                return Err(format!("two invocations share lane {} of one subgroup", place[1]));
            }
        }
        for (i, place) in places.chunks(4).enumerate() {
            let view = View { values: &groups[&place[0]], lane: place[1], size: place[2] };
            match oracle(&view) {
                Some(expected) if expected != out[i] => {
                    return Err(format!(
                        "[{i}] (lane {} of {}): expected {expected}, got {}",
                        place[1], place[2], out[i]
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    };
    Case::new(format!("subgroup.{name}"), body)
        .read("a", a)
        .scratch("places: array<vec4u>", vec![0_u32; 4 * N])
        .check("out", vec![0_u32; N], check)
        .workgroups(3, 1, 1)
        .needs(|n| n.subgroups = true)
}

/// Sizes, numbers and lanes fit together: a power of two, every lane once, no subgroup across two workgroups.
fn identity() -> Case {
    let body = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u, @builtin(workgroup_id) w: vec3u, \
                @builtin(subgroup_size) size: u32, @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_id) sub: u32, @builtin(num_subgroups) n: u32) {\n \
                out[id.x] = vec4u(w.x, size, lane, sub); counts[id.x] = n;\n}";
    Case::new("subgroup.identity", body)
        .scratch("counts", vec![0_u32; N])
        .check("out: array<vec4u>", vec![0_u32; 4 * N], |finals| {
            let mut seen = std::collections::BTreeSet::new();
            for (i, p) in finals[1].u32s().chunks(4).enumerate() {
                let [workgroup, size, lane, sub] = [p[0], p[1], p[2], p[3]];
                let n = finals[0].u32s()[i];
                if !size.is_power_of_two() || !(4..=128).contains(&size) {
                    return Err(format!("[{i}]: a subgroup of {size}"));
                }
                if lane >= size || sub >= n || n < 64_u32.div_ceil(size) {
                    return Err(format!("[{i}]: lane {lane} of {size} in subgroup {sub} of {n}"));
                }
                if workgroup as usize != i / 64 || !seen.insert((workgroup, sub, lane)) {
                    return Err(format!(
                        "[{i}]: lane {lane} of subgroup {sub} of workgroup {workgroup} is taken twice"
                    ));
                }
            }
            Ok(())
        })
        .workgroups(3, 1, 1)
        .needs(|n| n.subgroups = true)
}
