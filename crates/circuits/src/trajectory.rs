//! Shots as trajectories: measurements, resets, conditions and noise. `shots` calls it for circuits whose outcomes decide what follows. It groups shots by
//! the outcomes that they drew so far and computes a state once for each group, so a thousand shots that agree cost one. States that wait are bounded in
//! bytes: beyond that they are computed again from their outcomes. Measurements at the end are drawn all at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use cantus::{Engine, Error, Result, Tensor};
use num_complex::Complex;

use crate::apply;
use crate::circuit::{Circuit, Instruction, MOST_INSTRUCTIONS, Span};
use crate::compiled::{Precision, costs, elementary};
use crate::condition;
use crate::gate::{Matrix, ONE, ZERO};
use crate::noise::{Noise, pauli};
use crate::plan::{self, Elementary, Plan};
use crate::random;
use crate::real::Real;
use crate::split::Split;
use crate::state::State;
use crate::strips::Strips;

/// The bytes of states that wait for their turn. What is above is computed again.
const WAITING: u64 = 1 << 30;
/// Probabilities below are those of rounding.
const NEVER: f64 = 1e-6;

/// A step of a shot.
enum Step {
    /// Gates, as a plan with its tables.
    Gates(Arc<Plan>, Tensor),
    Measure {
        place: u8,
        bit: usize,
    },
    Reset {
        place: u8,
    },
    Depolarise {
        places: Vec<u8>,
        probability: f64,
    },
    Damp {
        place: u8,
    },
    Branch {
        condition: Span,
        otherwise: usize,
    },
    Jump {
        to: usize,
    },
}

/// Shots that have had the same outcomes, and where they go on.
struct Group {
    shots: Vec<u64>,
    /// The outcomes that all of them drew so far.
    history: Vec<u8>,
    step: usize,
    bits: Vec<bool>,
    state: Option<Strips>,
}

pub(crate) struct Run<'a> {
    engine: &'a Engine,
    circuit: &'a Circuit,
    noise: &'a Noise,
    seed: u64,
    split: Split,
    steps: Vec<Step>,
    /// The exchanges that cost nothing.
    free: Vec<usize>,
    /// From here on there are only measurements.
    tail: usize,
    groups: Vec<Group>,
    outcomes: Vec<(u64, Vec<bool>)>,
}

/// The instructions that a branch or a jump leads to.
fn targets(circuit: &Circuit) -> Vec<bool> {
    let mut targets = vec![false; circuit.instructions.len() + 1];
    for step in &circuit.instructions {
        if let Instruction::Branch { otherwise: to, .. } | Instruction::Jump { to } = step {
            targets[*to as usize] = true;
        }
    }
    targets
}

impl<'a> Run<'a> {
    pub fn new(
        engine: &'a Engine,
        circuit: &'a Circuit,
        parameters: &[f64],
        noise: &'a Noise,
        seed: u64,
        split: Split,
    ) -> Result<Self> {
        let mut run = Self {
            engine,
            circuit,
            noise,
            seed,
            split,
            steps: Vec::new(),
            free: plan::free_swaps(circuit),
            tail: 0,
            groups: Vec::new(),
            outcomes: Vec::new(),
        };
        let is_target = targets(circuit);
        let mut layout = plan::first_layout(circuit);
        // The step of each instruction, to which branches lead.
        let mut places = vec![0; circuit.instructions.len() + 1];
        let mut first = 0;
        for (at, instruction) in circuit.instructions.iter().enumerate() {
            if is_target[at] {
                run.gates(parameters, first..at, &mut layout)?;
                first = at;
            }
            places[at] = run.steps.len();
            match instruction {
                Instruction::Barrier { .. } => continue,
                Instruction::Gate(_) if !noise.has_gates() => continue,
                Instruction::Gate(_) => run.gates(parameters, first..at + 1, &mut layout)?,
                _ => run.gates(parameters, first..at, &mut layout)?,
            }
            first = at + 1;
            match *instruction {
                Instruction::Gate(gate) => run.errors(&circuit.operands[gate.qubits.range()], &layout),
                Instruction::Measure { qubit, bit } => {
                    run.steps.push(Step::Measure { place: layout[qubit as usize], bit: bit as usize });
                }
                Instruction::Reset { qubit } => run.steps.push(Step::Reset { place: layout[qubit as usize] }),
                Instruction::Branch { condition, otherwise } => {
                    run.steps.push(Step::Branch { condition, otherwise: otherwise as usize });
                }
                Instruction::Jump { to } => run.steps.push(Step::Jump { to: to as usize }),
                Instruction::Barrier { .. } => {}
            }
        }
        run.gates(parameters, first..circuit.instructions.len(), &mut layout)?;
        places[circuit.instructions.len()] = run.steps.len();
        for step in &mut run.steps {
            if let Step::Branch { otherwise: to, .. } | Step::Jump { to } = step {
                *to = places[*to];
            }
        }
        let last = run.steps.iter().rposition(|step| !matches!(step, Step::Measure { .. }));
        run.tail = last.map_or(0, |last| last + 1);
        // A branch into the tail would skip measurements.
        if run
            .steps
            .iter()
            .any(|step| matches!(step, Step::Branch { otherwise: to, .. } | Step::Jump { to } if *to > run.tail))
        {
            run.tail = run.steps.len();
        }
        Ok(run)
    }

    /// Adds the gates of instructions as one step.
    fn gates(&mut self, parameters: &[f64], range: std::ops::Range<usize>, layout: &mut [u8]) -> Result<()> {
        let gates = elementary(self.circuit, range, layout, &self.free);
        if gates.is_empty() {
            return Ok(());
        }
        let (plan, recipe) = plan::plan(self.split.qubits, gates, &costs(self.engine));
        let mut numbers = Vec::with_capacity(plan.entries);
        recipe.fill::<f32>(self.circuit, &plan, parameters, &mut numbers);
        self.steps.push(self.gates_of(plan, &numbers)?);
        Ok(())
    }

    fn gates_of(&self, plan: Plan, numbers: &[Complex<f32>]) -> Result<Step> {
        let tables = apply::tables::<f32>(self.engine, 1, plan.entries)?;
        <f32 as Real>::write(&tables, numbers)?;
        Ok(Step::Gates(Arc::new(plan), tables))
    }

    /// Adds the errors that follow a gate.
    fn errors(&mut self, qubits: &[u32], layout: &[u8]) {
        let places: Vec<u8> = qubits.iter().map(|qubit| layout[*qubit as usize]).collect();
        if let (2, true) = (places.len(), self.noise.two > 0.0) {
            self.steps.push(Step::Depolarise { places: places.clone(), probability: self.noise.two });
        } else if places.len() != 2 && self.noise.one > 0.0 {
            for place in &places {
                self.steps.push(Step::Depolarise { places: vec![*place], probability: self.noise.one });
            }
        }
        if self.noise.damping > 0.0 {
            self.steps.extend(places.into_iter().map(|place| Step::Damp { place }));
        }
    }

    /// Runs shots to their ends, and returns the bits of each with its number.
    pub fn all(mut self, shots: usize) -> Result<Vec<(u64, Vec<bool>)>> {
        if shots == 0 {
            return Ok(Vec::new());
        }
        let bits = vec![false; self.circuit.bits()];
        let shots = (0..shots as u64).collect();
        self.groups.push(Group { shots, history: Vec::new(), step: 0, bits, state: None });
        while let Some(group) = self.groups.pop() {
            self.one(group)?;
        }
        Ok(self.outcomes)
    }

    /// Runs a group to its end. Shots that draw something else become groups of their own.
    fn one(&mut self, mut group: Group) -> Result<()> {
        // What it drew already: all of the way if its state is computed again, else the event at which it stopped.
        let known = match group.state {
            Some(_) => group.history.pop().into_iter().collect(),
            None => std::mem::take(&mut group.history),
        };
        let mut known = known.into_iter();
        if group.state.is_none() {
            group.bits.fill(false);
            group.step = 0;
        }
        let mut rounds = 0_usize;
        while group.step < self.tail {
            rounds += 1;
            if rounds > MOST_INSTRUCTIONS {
                return Err(Error::limit(
                    "the circuit",
                    format!("a shot runs for more than {MOST_INSTRUCTIONS} steps"),
                ));
            }
            let at = group.step;
            group.step += 1;
            match &self.steps[at] {
                Step::Gates(plan, tables) => {
                    let state = Strips::run::<f32>(self.engine, self.split, plan, tables, group.state.as_ref())?;
                    group.state = Some(state);
                }
                Step::Branch { condition, otherwise } => {
                    if !condition::holds(&self.circuit.tests[condition.range()], &group.bits) {
                        group.step = *otherwise;
                    }
                }
                Step::Jump { to } => group.step = *to,
                event => {
                    let weights = self.weights(event, &group)?;
                    let outcome = match known.next() {
                        Some(outcome) => {
                            group.history.push(outcome);
                            outcome
                        }
                        None => self.split(&mut group, at, &weights),
                    };
                    self.happen(at, outcome, weights[usize::from(outcome)], &mut group)?;
                }
            }
        }
        self.finish(group)
    }

    fn state_of(&self, group: &Group) -> Result<State> {
        let strips = match &group.state {
            Some(state) => state.clone(),
            None => {
                let plan = Arc::new(Plan::of(self.split.qubits, Vec::new()));
                let tables = apply::tables::<f32>(self.engine, 1, 0)?;
                <f32 as Real>::write(&tables, &[Complex::new(0.0, 0.0)])?;
                Strips::run::<f32>(self.engine, self.split, &plan, &tables, None)?
            }
        };
        Ok(State::new(self.engine.clone(), strips, Precision::Single))
    }

    /// The probabilities of an event's outcomes.
    fn weights(&self, event: &Step, group: &Group) -> Result<Vec<f64>> {
        let one = |place: u8| -> Result<f64> {
            let one = self.state_of(group)?.probability_of_one(place)?;
            Ok(if one < NEVER {
                0.0
            } else if one > 1.0 - NEVER {
                1.0
            } else {
                one
            })
        };
        match event {
            // Outcome 0 and 1, read right, and then read wrong.
            Step::Measure { place, .. } => {
                let one = one(*place)?;
                let (wrong_zero, wrong_one) = (self.noise.misread(false), self.noise.misread(true));
                let zero = 1.0 - one;
                Ok(vec![zero * (1.0 - wrong_zero), one * (1.0 - wrong_one), zero * wrong_zero, one * wrong_one])
            }
            Step::Reset { place } => one(*place).map(|one| vec![1.0 - one, one]),
            Step::Damp { place } => {
                let falls = self.noise.damping * one(*place)?;
                Ok(vec![1.0 - falls, falls])
            }
            Step::Depolarise { places, probability } => {
                let kinds = 1_usize << (2 * places.len());
                let mut weights = vec![probability / kinds as f64; kinds];
                weights[0] += 1.0 - probability;
                Ok(weights)
            }
            _ => Ok(vec![1.0]),
        }
    }

    /// Has each shot draw its outcome. The group keeps those of one outcome, which is returned; the rest wait.
    fn split(&mut self, group: &mut Group, at: usize, weights: &[f64]) -> u8 {
        let mut by_outcome: BTreeMap<u8, Vec<u64>> = BTreeMap::new();
        let event = group.history.len() as u64;
        for shot in std::mem::take(&mut group.shots) {
            let mut left = random::uniform(self.seed, shot, event);
            let mut outcome = None;
            for (place, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
                outcome = Some(place as u8);
                if left < *weight {
                    break;
                }
                left -= weight;
            }
            by_outcome.entry(outcome.unwrap_or(0)).or_default().push(shot);
        }
        let Some((kept, shots)) = by_outcome.pop_first() else { return 0 };
        let state_bytes = Precision::Single.bytes() << self.split.qubits;
        for (outcome, shots) in by_outcome {
            let mut history = group.history.clone();
            history.push(outcome);
            let waiting = self.groups.iter().filter(|group| group.state.is_some()).count() as u64 + 1;
            // It takes the event again with what it drew, from the state before.
            let state = group.state.clone().filter(|_| waiting.saturating_mul(state_bytes) <= WAITING);
            let group = Group { shots, history, step: at, bits: group.bits.clone(), state };
            self.groups.push(group);
        }
        group.shots = shots;
        group.history.push(kept);
        kept
    }

    /// Applies an outcome to the state and the bits.
    fn happen(&self, at: usize, outcome: u8, weight: f64, group: &mut Group) -> Result<()> {
        let event = &self.steps[at];
        let mut passes: Vec<(Elementary, Matrix)> = Vec::new();
        match event {
            Step::Measure { place, bit } => {
                let one = outcome & 1 == 1;
                let wrong = self.noise.misread(one);
                let chance = weight / if outcome & 2 == 0 { 1.0 - wrong } else { wrong };
                if let Some(bit) = group.bits.get_mut(*bit) {
                    *bit = one != (outcome & 2 == 2);
                }
                let factor = ONE / chance.sqrt();
                let matrix = if one { vec![ZERO, ZERO, ZERO, factor] } else { vec![factor, ZERO, ZERO, ZERO] };
                passes.push((Elementary::at(&[*place]), matrix));
            }
            Step::Reset { place } => {
                let factor = ONE / weight.sqrt();
                let matrix = if outcome == 1 { vec![ZERO, factor, ZERO, ZERO] } else { vec![factor, ZERO, ZERO, ZERO] };
                passes.push((Elementary::at(&[*place]), matrix));
            }
            Step::Damp { place } => {
                let factor = ONE / weight.sqrt();
                let kept = (1.0 - self.noise.damping).sqrt();
                let falls = self.noise.damping.sqrt();
                let matrix = if outcome == 1 {
                    vec![ZERO, factor * falls, ZERO, ZERO]
                } else {
                    vec![factor, ZERO, ZERO, factor * kept]
                };
                passes.push((Elementary::at(&[*place]), matrix));
            }
            Step::Depolarise { places, .. } => {
                for (at, place) in places.iter().enumerate() {
                    let number = usize::from(outcome) >> (2 * at) & 3;
                    if number != 0 {
                        passes.push((Elementary::at(&[*place]), pauli(number)));
                    }
                }
            }
            _ => {}
        }
        if passes.is_empty() {
            return Ok(());
        }
        let (plan, numbers) = plan::passes::<f32>(self.split.qubits, &passes);
        let Step::Gates(plan, tables) = self.gates_of(plan, &numbers)? else { return Ok(()) };
        group.state = Some(Strips::run::<f32>(self.engine, self.split, &plan, &tables, group.state.as_ref())?);
        Ok(())
    }

    /// Draws what is measured at the end, all at once.
    fn finish(&mut self, group: Group) -> Result<()> {
        let event = group.history.len() as u64;
        let Some(measurements) = self.steps.get(self.tail..).filter(|steps| !steps.is_empty()) else {
            self.outcomes.extend(group.shots.iter().map(|shot| (*shot, group.bits.clone())));
            return Ok(());
        };
        let draws: Vec<f64> = group.shots.iter().map(|shot| random::uniform(self.seed, *shot, event)).collect();
        let drawn = self.state_of(&group)?.drawn(&draws)?;
        for (shot, drawn) in group.shots.iter().zip(drawn) {
            let mut bits = group.bits.clone();
            for (event, step) in (event + 1..).zip(measurements) {
                let Step::Measure { place, bit } = step else { continue };
                let one = drawn >> place & 1 == 1;
                let wrong = self.noise.misread(one);
                if let Some(bit) = bits.get_mut(*bit) {
                    *bit = one != (wrong > 0.0 && random::uniform(self.seed, *shot, event) < wrong);
                }
            }
            self.outcomes.push((*shot, bits));
        }
        Ok(())
    }
}
