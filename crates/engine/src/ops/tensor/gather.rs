//! Elements at places that another tensor names.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Node, Typed, View, is_whole};
use crate::ops::expr::shape::{broadcast, broadcast_strides};
use crate::ops::expr::view::{axis_of, reshaped};

impl Expr {
    /// The elements along an axis at the places that an i32 or u32 tensor names: its shape takes the axis's place. Negative places count
    /// from the end; those out of range are the nearest.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2])?;
    /// let rows = x.take(engine.tensor(&[2_i32, 0, -1])?, 0).eval()?;
    /// assert_eq!(rows.to_vec::<f32>()?, [5.0, 6.0, 1.0, 2.0, 5.0, 6.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn take(&self, index: impl Into<Self>, axis: isize) -> Self {
        let index = index.into();
        self.derived(|typed| {
            let index = self.beside(&index)?;
            let rank = typed.shape.len();
            let axis = axis_of(axis, rank)?;
            let mut shape = typed.shape[..axis].to_vec();
            shape.extend(&index.shape);
            shape.extend(&typed.shape[axis + 1..]);
            // The index runs along the axes that took the axis's place.
            let mut wide = index.shape.clone();
            wide.extend(std::iter::repeat_n(1, rank - axis - 1));
            let index = reshaped(&index, &wide);
            gathered(typed, axis, index, shape, |strides| {
                let mut wider = strides[..axis].to_vec();
                wider.extend(std::iter::repeat_n(0, wide.len() - (rank - axis - 1)));
                wider.extend(&strides[axis + 1..]);
                wider
            })
        })
    }

    /// The rows of a table (words, width) that this, of i32 or u32, names: a last axis of `width` elements. Places are as in [`Expr::take`].
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let table = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let words = engine.tensor(&[1_u32, 0, 1])?;
    /// assert_eq!(words.embedding(&table).eval()?.to_vec::<f32>()?, [3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn embedding(&self, table: impl Into<Self>) -> Self {
        let table = table.into();
        match table.shape() {
            Ok([_, _]) => self.of(Ok(table.take(self, 0))),
            Ok(shape) => self.failed(&Error::InvalidSize {
                what: format!("embedding from the shape {shape:?}"),
                reason: "a table has two axes: words, and what stands for each".to_owned(),
            }),
            Err(error) => self.failed(&error),
        }
    }

    /// The element along an axis that an i32 or u32 tensor of as many axes names at each place, as NumPy's `take_along_axis`: the other
    /// axes broadcast. Places are as in [`Expr::take`].
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let index = engine.tensor_from(&[1_u32, 0], &[2, 1])?;
    /// assert_eq!(x.gather(index, 1).eval()?.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn gather(&self, index: impl Into<Self>, axis: isize) -> Self {
        let index = index.into();
        self.derived(|typed| {
            let index = self.beside(&index)?;
            let rank = typed.shape.len();
            let axis = axis_of(axis, rank)?;
            let mut from = typed.shape.clone();
            from[axis] = 1;
            if index.shape.len() != rank {
                return Err(Error::InvalidSize {
                    what: format!("gather by {:?} from {:?}", index.shape, typed.shape),
                    reason: "the index must have as many axes".to_owned(),
                });
            }
            let shape = broadcast(&from, &index.shape)?;
            let to = shape.clone();
            gathered(typed, axis, index, shape, move |strides| {
                let mut inner = strides.to_vec();
                inner[axis] = 0;
                broadcast_strides(&from, &inner, &to)
            })
        })
    }
}

/// A gather node; `spread` makes strides of the source into strides of the result.
fn gathered(
    typed: &Arc<Typed>,
    axis: usize,
    index: Arc<Typed>,
    shape: Vec<usize>,
    spread: impl Fn(&[usize]) -> Vec<usize>,
) -> Result<Arc<Typed>> {
    if !is_whole(index.dtype) {
        return Err(Error::InvalidInput {
            what: format!("an index of {}", index.dtype),
            reason: "it must be i32 or u32, or narrower (cast it)".to_owned(),
        });
    }
    let length = typed.shape[axis];
    if length == 0 && !shape.contains(&0) {
        return Err(Error::InvalidSize {
            what: format!("axis {axis} of {:?}", typed.shape),
            reason: "it is empty".to_owned(),
        });
    }
    // What is read must lie somewhere.
    let source = match &typed.node {
        Node::Read(_) => typed.clone(),
        _ => typed.computed(),
    };
    let Node::Read(view) = &source.node else { return Ok(source) };
    let strides = broadcast_strides(&source.shape, &view.strides, &typed.shape);
    let stride = strides[axis];
    let view = View { source: view.source.clone(), offset: view.offset, strides: spread(&strides) };
    let node = Node::Gather { view, stride, length: length.max(1), index };
    Ok(Typed::new(node, shape, typed.dtype))
}

tensor_methods! {
    fn take(index: impl Into<Expr>, axis: isize);
    fn gather(index: impl Into<Expr>, axis: isize);
    fn embedding(table: impl Into<Expr>);
}
