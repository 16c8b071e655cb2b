//! Pictures of circuits: one layout of columns, written as text for a terminal and as SVG for a page. Long circuits are cut, and say so. `Circuit::draw`
//! and the page call it. Columns are found greedily, each instruction as far to the left as its qubits allow. Limits cut long circuits, because a picture
//! of a million gates helps nobody.

use std::fmt::Write as _;

use crate::circuit::{Circuit, Instruction};
use crate::gate::Kind;

/// The most columns of a picture.
const MOST_COLUMNS: usize = 4000;
/// The most qubits of a picture.
const MOST_LINES: usize = 256;

/// The picture of a qubit's part in a gate.
#[derive(Debug, Clone, PartialEq)]
enum Mark {
    /// A control, which acts where its qubit is 1 or 0.
    Control(bool),
    Box(String),
    /// The target of an X with controls.
    Plus,
    /// One of two exchanged qubits.
    Cross,
    Barrier,
    /// A line between marks passes through.
    Through,
}

/// A column: marks by qubit, and the gate that joins them.
#[derive(Debug, Clone)]
struct Column {
    marks: Vec<Option<Mark>>,
    groups: Vec<Option<usize>>,
}

impl Instruction {
    /// Returns whether a picture joins its qubits.
    fn joins(&self) -> bool {
        matches!(self, Self::Gate(_))
    }
}

impl Circuit {
    /// The marks of an instruction, by qubit.
    fn marks(&self, step: &Instruction) -> Vec<(usize, Mark)> {
        match *step {
            Instruction::Gate(gate) => {
                let qubits = &self.operands[gate.qubits.range()];
                let (controls, targets) = qubits.split_at(gate.controls as usize);
                let control = |(at, qubit): (usize, &u32)| (*qubit as usize, Mark::Control(gate.open >> at & 1 == 0));
                let mut marks: Vec<_> = controls.iter().enumerate().map(control).collect();
                let label = self.label(&gate);
                for (at, qubit) in targets.iter().enumerate() {
                    let mark = match gate.kind {
                        Kind::X if gate.controls > 0 => Mark::Plus,
                        Kind::Swap => Mark::Cross,
                        Kind::Z if gate.controls > 0 => Mark::Control(true),
                        _ if targets.len() > 1 => Mark::Box(format!("{label} {at}")),
                        _ => Mark::Box(label.clone()),
                    };
                    marks.push((*qubit as usize, mark));
                }
                if gate.kind == Kind::GlobalPhase
                    && let Some(last) = marks.last_mut()
                {
                    last.1 = Mark::Box(label.replace("gphase", "P"));
                }
                marks
            }
            Instruction::Measure { qubit, bit } => vec![(qubit as usize, Mark::Box(format!("M→{bit}")))],
            Instruction::Reset { qubit } => vec![(qubit as usize, Mark::Box("|0⟩".to_owned()))],
            Instruction::Barrier { qubits } => {
                self.operands[qubits.range()].iter().map(|qubit| (*qubit as usize, Mark::Barrier)).collect()
            }
            Instruction::Branch { condition, .. } => {
                let first = [(0, Mark::Box(format!("if {}", self.condition(condition))))];
                first.into_iter().chain(self.on_all("if").into_iter().skip(1)).collect()
            }
            Instruction::Jump { .. } => self.on_all("else"),
        }
    }

    fn on_all(&self, label: &str) -> Vec<(usize, Mark)> {
        (0..self.qubits()).map(|qubit| (qubit, Mark::Box(label.to_owned()))).collect()
    }

    /// The number of conditions that end before each instruction, and behind the last.
    fn ends(&self) -> Vec<usize> {
        let mut ends = vec![0; self.instructions.len() + 1];
        for step in &self.instructions {
            let Instruction::Branch { otherwise, .. } = *step else { continue };
            let before = (otherwise as usize).checked_sub(1).and_then(|at| self.instructions.get(at));
            let end = match before {
                Some(Instruction::Jump { to }) => *to,
                _ => otherwise,
            };
            if let Some(count) = ends.get_mut(end as usize) {
                *count += 1;
            }
        }
        ends
    }

    /// The columns of a picture: each instruction as far to the left as its qubits allow.
    fn columns(&self) -> (Vec<Column>, bool) {
        let lines = self.qubits().min(MOST_LINES);
        let mut columns: Vec<Column> = Vec::new();
        let mut free = vec![0_usize; lines];
        let mut cut = self.qubits() > lines;
        let ends = self.ends();
        let steps = self.instructions.iter().map(Some).chain([None]);
        let marks = steps.zip(&ends).flat_map(|(step, ends)| {
            let ended = (0..*ends).map(move |_| (false, self.on_all("end")));
            ended.chain(step.map(move |step| (step.joins(), self.marks(step))))
        });
        for (joins, mut marks) in marks {
            marks.retain(|(qubit, _)| *qubit < lines);
            let Some(low) = marks.iter().map(|(qubit, _)| *qubit).min() else { continue };
            let high = marks.iter().map(|(qubit, _)| *qubit).max().unwrap_or(low);
            let at = free[low..=high].iter().copied().max().unwrap_or(0);
            if at >= MOST_COLUMNS {
                cut = true;
                break;
            }
            if columns.len() <= at {
                columns.resize(at + 1, Column { marks: vec![None; lines], groups: vec![None; lines] });
            }
            let column = &mut columns[at];
            free[low..=high].fill(at + 1);
            if joins && high > low {
                column.marks[low..=high].fill(Some(Mark::Through));
                column.groups[low..=high].fill(Some(low));
            }
            for (qubit, mark) in marks {
                column.marks[qubit] = Some(mark);
            }
        }
        (columns, cut)
    }

    /// The name of a qubit: its register, and its place there.
    fn line_name(&self, qubit: usize) -> String {
        let register = self.qubit_registers().iter().find(|register| register.range.contains(&qubit));
        register.map_or_else(
            || format!("{qubit}"),
            |register| match register.range.len() {
                1 => register.name.clone(),
                _ => format!("{}[{}]", register.name, qubit - register.range.start),
            },
        )
    }

    /// Draws the circuit as text, a line for each qubit, qubit 0 on top. Pictures end after 4,000 columns and 256 qubits.
    ///
    /// ```
    /// let mut bell = cantus_circuits::Circuit::new(2)?;
    /// bell.h(0)?.cx(0, 1)?;
    /// assert_eq!(bell.draw(), "\
    /// q[0]: ─H─●─
    ///          │
    /// q[1]: ───⊕─
    /// ");
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn draw(&self) -> String {
        let (columns, cut) = self.columns();
        let lines = self.qubits().min(MOST_LINES);
        let names: Vec<String> = (0..lines).map(|line| self.line_name(line)).collect();
        let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let mut rows: Vec<String> = names.iter().map(|name| format!("{name:>widest$}: ─")).collect();
        let mut between = vec![" ".repeat(widest + 3); lines.saturating_sub(1)];
        for column in &columns {
            let text = |mark: &Option<Mark>| match mark {
                None => String::new(),
                Some(Mark::Control(true)) => "●".to_owned(),
                Some(Mark::Control(false)) => "○".to_owned(),
                Some(Mark::Plus) => "⊕".to_owned(),
                Some(Mark::Cross) => "×".to_owned(),
                Some(Mark::Barrier) => "░".to_owned(),
                Some(Mark::Through) => "┼".to_owned(),
                Some(Mark::Box(label)) => label.clone(),
            };
            let texts: Vec<String> = column.marks.iter().map(text).collect();
            let width = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0).max(1);
            let ties = ties(column);
            for (line, row) in rows.iter_mut().enumerate() {
                let text = &texts[line];
                let left = (width - text.chars().count()) / 2;
                let right = width - text.chars().count() - left;
                let _ = write!(row, "{}{text}{}─", "─".repeat(left), "─".repeat(right));
                if let Some(between) = between.get_mut(line) {
                    let tie = if ties[line] { "│" } else { " " };
                    let left = (width - 1) / 2;
                    let _ = write!(between, "{}{tie}{}", " ".repeat(left), " ".repeat(width - left));
                }
            }
        }
        let mut picture = String::new();
        for (line, row) in rows.iter().enumerate() {
            let _ = writeln!(picture, "{row}");
            if let Some(between) = between.get(line) {
                let _ = writeln!(picture, "{}", between.trim_end());
            }
        }
        if cut {
            picture.push_str("… (the circuit goes on)\n");
        }
        picture
    }

    /// Draws the circuit as an SVG picture, with the limits of [`Circuit::draw`].
    #[must_use]
    pub fn draw_svg(&self) -> String {
        const ROW: usize = 40;
        let (columns, cut) = self.columns();
        let lines = self.qubits().min(MOST_LINES);
        let names: Vec<String> = (0..lines).map(|line| self.line_name(line)).collect();
        let letters = |text: &str| 8 * text.chars().count();
        let left = 24 + names.iter().map(|name| letters(name)).max().unwrap_or(0);
        let width_of = |column: &Column| {
            let boxes = column.marks.iter().filter_map(|mark| match mark {
                Some(Mark::Box(label)) => Some(letters(label) + 16),
                _ => None,
            });
            boxes.max().unwrap_or(0).max(28) + 12
        };
        let width = left + columns.iter().map(width_of).sum::<usize>() + 24;
        let height = ROW * lines.max(1) + if cut { 24 } else { 0 };
        let y = |line: usize| ROW * line + ROW / 2;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"ui-monospace,monospace\" font-size=\"13\" text-anchor=\"middle\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<g stroke=\"#444\" fill=\"none\">\n"
        );
        for line in 0..lines {
            let _ = writeln!(svg, "<path d=\"M{left} {y}H{}\"/>", width - 12, y = y(line));
        }
        svg.push_str("</g>\n");
        for (line, name) in names.iter().enumerate() {
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
                left - 8,
                y(line) + 5,
                escaped(name)
            );
        }
        let mut at = left;
        for column in &columns {
            let width = width_of(column);
            let x = at + width / 2;
            at += width;
            for (line, tie) in ties(column).into_iter().enumerate() {
                if tie {
                    let _ = writeln!(
                        svg,
                        "<path d=\"M{x} {}V{}\" stroke=\"#1a5fb4\" stroke-width=\"2\"/>",
                        y(line),
                        y(line + 1)
                    );
                }
            }
            for (line, mark) in column.marks.iter().enumerate() {
                let (y, blue) = (y(line), "#1a5fb4");
                let _ = match mark {
                    None | Some(Mark::Through) => Ok(()),
                    Some(Mark::Control(one)) => {
                        let fill = if *one { blue } else { "#fff" };
                        writeln!(
                            svg,
                            "<circle cx=\"{x}\" cy=\"{y}\" r=\"5\" fill=\"{fill}\" stroke=\"{blue}\" stroke-width=\"2\"/>"
                        )
                    }
                    Some(Mark::Plus) => writeln!(
                        svg,
                        "<circle cx=\"{x}\" cy=\"{y}\" r=\"10\" fill=\"#fff\" stroke=\"{blue}\" stroke-width=\"2\"/>\
                         <path d=\"M{} {y}h20M{x} {}v20\" stroke=\"{blue}\" stroke-width=\"2\"/>",
                        x - 10,
                        y - 10
                    ),
                    Some(Mark::Cross) => writeln!(
                        svg,
                        "<path d=\"M{} {}l12 12m-12 0l12 -12\" stroke=\"{blue}\" stroke-width=\"2\"/>",
                        x - 6,
                        y - 6
                    ),
                    Some(Mark::Barrier) => writeln!(
                        svg,
                        "<path d=\"M{x} {}v{ROW}\" stroke=\"#888\" stroke-width=\"2\" stroke-dasharray=\"4 3\"/>",
                        y - ROW / 2
                    ),
                    Some(Mark::Box(label)) => {
                        let wide = (letters(label) + 12).max(28);
                        writeln!(
                            svg,
                            "<rect x=\"{}\" y=\"{}\" width=\"{wide}\" height=\"28\" rx=\"4\" fill=\"#e8f0fb\" stroke=\"{blue}\"/>\
                             <text x=\"{x}\" y=\"{}\">{}</text>",
                            x - wide / 2,
                            y - 14,
                            y + 5,
                            escaped(label)
                        )
                    }
                };
            }
        }
        if cut {
            let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\">… the circuit goes on</text>", width / 2, height - 8);
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// For each line, whether the next one is joined to it in a column.
fn ties(column: &Column) -> Vec<bool> {
    let mut ties: Vec<bool> =
        column.groups.windows(2).map(|pair| pair.first() == pair.last() && pair.first() != Some(&None)).collect();
    // Nothing is below the last one.
    ties.push(false);
    ties
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
