//! Smaller programs that fail in the same way: statements, phases and clauses are dropped as long as the failure stays.

use kit::random::program::{Phase, Program, Statement};

/// Drops what can be dropped. `fails` must be false for a program that is no longer valid.
pub fn shrink(program: Program, fails: impl Fn(&Program) -> bool) -> Program {
    let mut smallest = program;
    loop {
        let mut at = 0;
        let mut progress = false;
        // Each number names one thing to drop, in the order of the text.
        while let Some(candidate) = without(&smallest, at) {
            if fails(&candidate) {
                smallest = candidate;
                progress = true;
            } else {
                at += 1;
            }
        }
        if !progress {
            return smallest;
        }
    }
}

/// The program without its `at`-th part, or nothing when there are fewer.
fn without(program: &Program, at: usize) -> Option<Program> {
    let mut smaller = program.clone();
    let mut cut = Cut { left: at, done: false };
    cut.phases(&mut smaller.phases);
    for function in &mut smaller.functions {
        cut.statements(&mut function.body);
    }
    cut.list(&mut smaller.outputs);
    cut.list(&mut smaller.signed_outputs);
    cut.done.then_some(smaller)
}

/// Counts parts down and removes the one at zero.
struct Cut {
    left: usize,
    done: bool,
}

impl Cut {
    fn here(&mut self) -> bool {
        if self.done {
            return false;
        }
        self.done = self.left == 0;
        self.left = self.left.wrapping_sub(1);
        self.done
    }

    fn list<T>(&mut self, list: &mut Vec<T>) {
        for i in 0..list.len() {
            // An output at least must remain, or the binding would be gone.
            if list.len() > 1 && self.here() {
                list.remove(i);
                return;
            }
        }
    }

    fn phases(&mut self, list: &mut Vec<Phase>) {
        for i in 0..list.len() {
            if self.done {
                return;
            }
            if self.here() {
                list.remove(i);
                return;
            }
            match &mut list[i] {
                Phase::Alone(statements) => self.statements(statements),
                Phase::Repeat { body, .. } => {
                    self.phases(body);
                }
                Phase::Choose { then, otherwise, .. } => {
                    self.phases(then);
                    self.phases(otherwise);
                }
                Phase::Exchange { .. } | Phase::Broadcast { .. } | Phase::Sum { .. } => {}
            }
        }
    }

    fn statements(&mut self, list: &mut Vec<Statement>) {
        for i in 0..list.len() {
            if self.done {
                return;
            }
            if self.here() {
                list.remove(i);
                return;
            }
            match &mut list[i] {
                Statement::If(_, then, otherwise) => {
                    // Without the condition.
                    if self.here() {
                        let body = std::mem::take(then);
                        list.splice(i..=i, body);
                        return;
                    }
                    self.statements(then);
                    self.statements(otherwise);
                }
                Statement::For { body, .. } => self.statements(body),
                Statement::Loop { body, continuing, break_if, .. } => {
                    if break_if.is_some() && self.here() {
                        *break_if = None;
                        return;
                    }
                    self.statements(body);
                    self.statements(continuing);
                }
                Statement::Switch(_, _, clauses) => {
                    for k in 0..clauses.len() {
                        if !clauses[k].0.is_empty() && self.here() {
                            clauses.remove(k);
                            return;
                        }
                        self.statements(&mut clauses[k].1);
                    }
                }
                _ => {}
            }
        }
    }
}
