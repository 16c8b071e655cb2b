//! Neighbouring gates become one pass, where that costs less. `plan` calls it with the gates of a circuit at places. A gate joins an earlier cluster if the
//! cost of both together is less than apart; the order between gates that share a mixed place stays. `Costs` differ: the CPU pays for arithmetic, a GPU for
//! each pass over memory.

use super::{Costs, Elementary, Form, Op};

/// Gates that become one pass.
#[derive(Debug, Clone, Default)]
struct Cluster {
    members: Vec<usize>,
    /// All places, those that a member targets, and those that a member mixes.
    all: u64,
    targets: u64,
    mixes: u64,
    /// The controls that all members have.
    ones: u64,
    zeros: u64,
}

impl Cluster {
    fn of(at: usize, gate: &Elementary) -> Self {
        let space = gate.space();
        Self {
            members: vec![at],
            all: space | gate.ones | gate.zeros,
            targets: space,
            mixes: if gate.diagonal { 0 } else { space },
            ones: gate.ones,
            zeros: gate.zeros,
        }
    }

    /// Both without the list of members, for its cost.
    fn joined(&self, other: &Self) -> Self {
        let targets = self.targets | other.targets;
        Self {
            members: Vec::new(),
            all: self.all | other.all,
            targets,
            mixes: self.mixes | other.mixes,
            ones: self.ones & other.ones & !targets,
            zeros: self.zeros & other.zeros & !targets,
        }
    }

    fn space(&self) -> u64 {
        self.all & !self.ones & !self.zeros
    }

    fn cost(&self, costs: &Costs) -> f64 {
        let (targets, controls) = (self.space().count_ones() as usize, (self.ones | self.zeros).count_ones());
        match self.mixes {
            0 => costs.diagonal(targets, controls),
            _ => costs.dense(targets, controls),
        }
    }
}

/// The clusters so far, in the order in which they run. Those that went into another one are `None`.
struct Order<'a> {
    clusters: Vec<Option<Cluster>>,
    /// By place: the last cluster that touches it, and the last one that mixes it.
    touched: [Option<usize>; 64],
    mixed: [Option<usize>; 64],
    costs: &'a Costs,
}

fn places(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(place)
    })
}

impl Order<'_> {
    fn cluster(&self, at: usize) -> Option<&Cluster> {
        self.clusters.get(at).and_then(Option::as_ref)
    }

    /// Adds a gate to the cluster, or the new one, where that costs least.
    fn add(&mut self, new: Cluster) {
        // It runs after whatever mixes its places, and after whatever depends on those that it mixes.
        let after = |place| if new.mixes >> place & 1 == 1 { self.touched[place] } else { self.mixed[place] };
        let bound = places(new.all).filter_map(after).max();
        let mut candidates: Vec<Option<usize>> = vec![bound];
        let mut neighbours: Vec<usize> = places(new.all).filter_map(|place| self.touched[place]).collect();
        neighbours.sort_unstable();
        neighbours.dedup();
        candidates.extend(neighbours.iter().filter(|at| Some(**at) > bound).map(|at| Some(*at)));
        candidates.push(None);
        candidates.dedup();

        let mut best: Option<(f64, Option<usize>, Vec<usize>)> = None;
        for candidate in candidates {
            let (mut joined, mut more) = match candidate.and_then(|at| self.cluster(at)) {
                Some(cluster) => (cluster.joined(&new), -cluster.cost(self.costs)),
                None => (Cluster { members: Vec::new(), ..new.clone() }, 0.0),
            };
            let mut taken = Vec::new();
            for &neighbour in neighbours.iter().filter(|at| Some(**at) != candidate) {
                let Some(cluster) = self.cluster(neighbour) else { continue };
                // Nothing behind it depends on its places, so it may run as late as the gate.
                if candidate.is_some_and(|at| at < neighbour)
                    || places(cluster.all).any(|p| self.touched[p] != Some(neighbour))
                {
                    continue;
                }
                let both = joined.joined(cluster);
                if both.cost(self.costs) <= joined.cost(self.costs) + cluster.cost(self.costs) {
                    more -= cluster.cost(self.costs);
                    joined = both;
                    taken.push(neighbour);
                }
            }
            more += joined.cost(self.costs);
            if best.as_ref().is_none_or(|(least, ..)| more < *least) {
                best = Some((more, candidate, taken));
            }
        }
        let Some((_, into, taken)) = best else { return };
        let mut whole = into.and_then(|at| self.clusters[at].take());
        for at in taken {
            let Some(cluster) = self.clusters[at].take() else { continue };
            whole = Some(match whole {
                Some(before) => merged(before, cluster),
                None => cluster,
            });
        }
        let whole = match whole {
            Some(before) => merged(before, new),
            None => new,
        };
        let at = into.unwrap_or(self.clusters.len());
        for place in places(whole.all) {
            // A place that a later cluster touches keeps that one.
            self.touched[place] = self.touched[place].max(Some(at));
            if whole.mixes >> place & 1 == 1 {
                self.mixed[place] = self.mixed[place].max(Some(at));
            }
        }
        match self.clusters.get_mut(at) {
            Some(slot) => *slot = Some(whole),
            None => self.clusters.push(Some(whole)),
        }
    }
}

fn merged(before: Cluster, after: Cluster) -> Cluster {
    let joined = before.joined(&after);
    let mut members = before.members;
    members.extend(after.members);
    Cluster { members, ..joined }
}

/// The passes of gates in their order, and the gates of each pass.
pub(super) fn fuse(gates: &[Elementary], costs: &Costs) -> (Vec<Op>, Vec<Vec<usize>>) {
    let mut order = Order { clusters: Vec::new(), touched: [None; 64], mixed: [None; 64], costs };
    for (at, gate) in gates.iter().enumerate() {
        order.add(Cluster::of(at, gate));
    }
    let (mut ops, mut members) = (Vec::new(), Vec::new());
    let mut table = 0;
    for cluster in order.clusters.into_iter().flatten() {
        let form = if cluster.mixes == 0 { Form::Diagonal } else { Form::Dense };
        let targets = places(cluster.space()).map(|place| place as u8).collect();
        let op = Op { form, targets, ones: cluster.ones, zeros: cluster.zeros, table };
        table += op.entries();
        ops.push(op);
        members.push(cluster.members);
    }
    (ops, members)
}
