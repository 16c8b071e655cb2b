//! Lives of results: those that are not needed at the same time share memory. Captures plan the memory of their graphs by it, and traces that of their
//! small results.

/// A result: the step that makes it, the last one that uses it, and its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) bytes: u64,
}

/// Memory that results take turns in.
pub(super) struct Homes {
    /// The home of each result.
    pub(super) of: Vec<usize>,
    /// The bytes of each home: those of the largest result in it.
    pub(super) bytes: Vec<u64>,
}

/// Gives each result a home for as long as it lives: the smallest free one that it fits in, otherwise the largest free one, which grows, otherwise a new
/// one. Results come in the order in which they are made.
pub(super) fn homes(lives: &[Life]) -> Homes {
    let mut homes = Homes { of: Vec::with_capacity(lives.len()), bytes: Vec::new() };
    let (mut free, mut taken): (Vec<usize>, Vec<(usize, usize)>) = Default::default();
    for life in lives {
        taken.retain(|&(last, home)| {
            if last < life.first {
                free.push(home);
            }
            last >= life.first
        });
        let bytes = &mut homes.bytes;
        // What fits comes before what does not, the smaller before the larger there, the larger before the smaller here.
        let best = (0..free.len()).min_by_key(|&place| match bytes[free[place]] {
            has if has >= life.bytes => (false, has),
            has => (true, u64::MAX - has),
        });
        let home = match best {
            Some(place) => free.swap_remove(place),
            None => {
                bytes.push(0);
                bytes.len() - 1
            }
        };
        bytes[home] = bytes[home].max(life.bytes);
        taken.push((life.last, home));
        homes.of.push(home);
    }
    homes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of random lives, no two that meet share a home, each fits in its own, and a chain takes two.
    #[test]
    fn results_that_meet_have_homes_of_their_own() {
        let chain: Vec<Life> =
            (0..100).map(|first| Life { first, last: first + 1, bytes: 64 + first as u64 }).collect();
        assert_eq!(homes(&chain).bytes, [162, 163]);
        let seed =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64)
                | 1;
        println!("seed {seed}");
        let mut state = seed;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..200 {
            let mut lives: Vec<Life> = (0..random(60))
                .map(|_| {
                    let first = random(50) as usize;
                    Life { first, last: first + random(10) as usize, bytes: 1 + random(1000) }
                })
                .collect();
            lives.sort_by_key(|life| life.first);
            let homes = homes(&lives);
            for (place, (one, home)) in lives.iter().zip(&homes.of).enumerate() {
                assert!(one.bytes <= homes.bytes[*home], "{lives:?}");
                for (other, theirs) in lives.iter().zip(&homes.of).take(place) {
                    assert!(home != theirs || other.last < one.first, "{one:?} {other:?}");
                }
            }
            let most =
                (0..60).map(|at| lives.iter().filter(|life| (life.first..=life.last).contains(&at)).count()).max();
            assert_eq!(Some(homes.bytes.len()), most, "more homes than results at once: {lives:?}");
        }
    }
}
