//! Fields by several devices.

use std::ops::Range;

use cantus_group::{Done, Group, Plan};

use super::{FieldParams, field_part};
use crate::engine::Engine;
use crate::error::Result;

/// The name of the work: members have a speed for each.
const NAME: &str = "field";

/// Computes fields by the devices of a [`Group`].
///
/// ```
/// use cantus::{group::Group, ops::field::{FieldParams, GroupField}};
///
/// let group = Group::open(&["cpu", "cpu"])?;
/// let field = group.field(&FieldParams::new(300, 200))?;
/// assert_eq!(field.values.len(), 300 * 200);
/// # Ok::<_, cantus::Error>(())
/// ```
pub trait GroupField {
    /// Returns the plan that [`GroupField::field`] would follow now.
    #[must_use]
    fn field_plan(&self, params: &FieldParams) -> Plan;

    /// Computes [`super::field`]: height times width values, row-major.
    ///
    /// # Errors
    /// As [`super::field`]; the first failure if every member failed.
    fn field(&self, params: &FieldParams) -> Result<Done<Vec<f32>>>;

    /// Computes [`GroupField::field`] into existing memory. For one field after another, this avoids allocating new pages.
    ///
    /// # Errors
    /// As [`GroupField::field`], and [`crate::error::Error::Shape`] if `values` has another length. After an error some rows may be written.
    fn field_into(&self, params: &FieldParams, values: &mut [f32]) -> Result<Done<()>>;
}

impl GroupField for Group {
    fn field_plan(&self, params: &FieldParams) -> Plan {
        self.plan(NAME, (params.height, params.width))
    }

    fn field(&self, params: &FieldParams) -> Result<Done<Vec<f32>>> {
        refused(self, params)?;
        self.generate(NAME, (params.height, params.width), strip(params))
    }

    fn field_into(&self, params: &FieldParams, values: &mut [f32]) -> Result<Done<()>> {
        refused(self, params)?;
        self.generate_into(NAME, (params.height, params.width), values, strip(params))
    }
}

fn strip(params: &FieldParams) -> impl Fn(&Engine, Range<usize>) -> Result<cantus_engine::Tensor> + Sync {
    |engine, rows| field_part(engine, params, rows, 0..params.width)
}

/// A field without elements: it has no strip that a member would refuse.
fn refused(group: &Group, params: &FieldParams) -> Result<()> {
    match group.members().first() {
        Some(engine) if params.width == 0 || params.height == 0 => strip(params)(engine, 0..0).map(drop),
        _ => Ok(()),
    }
}
