//! The library's pictures.

use cantus::Engine;
use cantus::ops::field::{FieldParams, Frequency};

use super::array::Output;
use super::{PictureName, PictureWork};
use crate::problem::Problem;

pub fn check(work: &PictureWork, memory: u64) -> Result<(), Problem> {
    let PictureWork { picture, width, height, frequency, time, .. } = *work;
    for (side, name) in [(width, "/width"), (height, "/height")] {
        if side == 0 {
            return Err(Problem::invalid("a picture has at least one column and one row").at(name));
        }
    }
    if u64::from(width) * u64::from(height) > memory / 8 {
        return Err(Problem::too_large(format!("a picture may have {} elements here", memory / 8)).at("/width"));
    }
    if picture == PictureName::PhiPattern && frequency.is_some() {
        return Err(Problem::invalid("only the field has a frequency").at("/frequency"));
    }
    if frequency.is_some_and(|hertz| !(hertz.is_finite() && hertz > 0.0 && hertz <= 1e6)) {
        return Err(Problem::invalid("a frequency is above 0 and at most 1000000 Hz").at("/frequency"));
    }
    if !time.is_finite() || time.abs() > 1e6 {
        return Err(Problem::invalid("a time is at most 1000000 seconds from 0").at("/time"));
    }
    Ok(())
}

pub fn run(engine: &Engine, work: &PictureWork) -> cantus::Result<Output> {
    let PictureWork { picture, width, height, frequency, time, .. } = *work;
    let (width, height) = (width as usize, height as usize);
    let tensor = match picture {
        PictureName::PhiPattern => cantus::ops::field::phi_pattern(engine, width, height)?,
        PictureName::Field => {
            let frequency = frequency.map_or(Frequency::Love, Frequency::Hertz);
            cantus::ops::field::field(engine, &FieldParams::new(width, height).frequency(frequency).time(time))?
        }
    };
    Output::of(&tensor)
}
