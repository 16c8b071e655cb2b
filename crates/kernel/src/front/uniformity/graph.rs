//! The specification's graph of one function: an edge says "is uniform only if that is". `Walk` adds nodes and edges, and `mod` searches. Breadth-first
//! search gives the shortest way, which becomes the message. Edges are counted against the length of the text: beyond the bound the graph is cut, and the
//! analysis says nothing rather than take quadratic time.

use super::super::tree::{DeclId, Place};

/// The number of a node.
pub(super) type Node = u32;

/// The node of everything that may be non-uniform.
pub(super) const VARIES: Node = 0;
/// Control flow where the function begins.
pub(super) const START: Node = 1;
/// The node of the function's result.
pub(super) const RESULT: Node = 2;

/// Why something may be non-uniform, as far as one function shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// A variable, or a parameter that points to one, which other invocations may write.
    Memory(DeclId),
    /// An input of an entry point.
    Input(DeclId),
    /// A builtin function whose results are each invocation's own.
    Builtin,
    /// A function (its number) that returns such a value.
    Result(u32),
    /// A function that leaves such a value behind its pointer parameter with this number.
    Pointee(u32, u32),
}

/// The meaning of a node, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Plain,
    /// A condition or selector on which control depends.
    Condition,
    /// A place where a local variable gets a value.
    Set(DeclId),
    /// A place where a local name is read.
    Read(DeclId),
    Source(Source),
}

/// Nodes and edges. Too many edges for the length of a text are not kept: then nothing is known.
#[derive(Debug)]
pub(super) struct Graph {
    pub marks: Vec<(Mark, Place)>,
    edges: Vec<(Node, Node)>,
    most: usize,
}

impl Graph {
    /// A graph for a text of that many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let nowhere = (Mark::Plain, Place { start: 0, end: 0 });
        Self { marks: vec![nowhere; 3], edges: Vec::new(), most: 4096 + 16 * bytes }
    }

    pub(super) fn node(&mut self, mark: Mark, place: Place) -> Node {
        self.marks.push((mark, place));
        (self.marks.len() - 1) as Node
    }

    pub(super) fn edge(&mut self, from: Node, to: Node) {
        if from != to && self.edges.len() < self.most {
            self.edges.push((from, to));
        }
    }

    pub(super) fn is_cut(&self) -> bool {
        self.edges.len() >= self.most
    }
}

/// Searches of a finished graph.
pub(super) struct Search {
    /// The index of each node's first target.
    starts: Vec<u32>,
    targets: Vec<Node>,
    /// The search that reached a node last.
    reached: Vec<u32>,
    parents: Vec<Node>,
    round: u32,
    open: Vec<Node>,
}

impl Search {
    pub(super) fn new(graph: &Graph) -> Self {
        let count = graph.marks.len();
        let mut starts = vec![0_u32; count + 1];
        for (from, _) in &graph.edges {
            starts[*from as usize + 1] += 1;
        }
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut targets = vec![VARIES; graph.edges.len()];
        for (from, to) in &graph.edges {
            let place = &mut next[*from as usize];
            targets[*place as usize] = *to;
            *place += 1;
        }
        Self { starts, targets, reached: vec![0; count], parents: vec![VARIES; count], round: 0, open: Vec::new() }
    }

    /// Forgets what was reached.
    pub(super) fn begin(&mut self) {
        self.round += 1;
    }

    /// Forgets that a node was reached.
    pub(super) fn forget(&mut self, node: Node) {
        self.reached[node as usize] = 0;
    }

    pub(super) fn is_reached(&self, node: Node) -> bool {
        self.reached[node as usize] == self.round
    }

    /// Reaches what can be reached from some nodes and was not reached before; the shortest ways come first.
    pub(super) fn reach(&mut self, from: impl IntoIterator<Item = Node>) {
        self.open.clear();
        for node in from {
            if !self.is_reached(node) {
                self.reached[node as usize] = self.round;
                self.parents[node as usize] = node;
                self.open.push(node);
            }
        }
        let mut done = 0;
        while let Some(&node) = self.open.get(done) {
            done += 1;
            let range = self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize;
            for at in range {
                let target = self.targets[at];
                if self.reached[target as usize] != self.round {
                    self.reached[target as usize] = self.round;
                    self.parents[target as usize] = node;
                    self.open.push(target);
                }
            }
        }
    }

    /// The way on which a node was reached, from where it began.
    pub(super) fn path(&self, mut node: Node) -> Vec<Node> {
        let mut path = vec![node];
        while self.parents[node as usize] != node {
            node = self.parents[node as usize];
            path.push(node);
        }
        path.reverse();
        path
    }
}
