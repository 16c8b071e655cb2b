//! The library's pictures.

use cantus::Engine;
use cantus::ops::field::{FieldParams, Frequency};

use super::Failure;
use super::forms::{PictureName, PictureWork};
use super::output::Output;
use super::progress::Steps;
use crate::job::Shape;
use crate::problem::Problem;

pub fn check(work: &PictureWork, memory: u64) -> Result<(), Problem> {
    let PictureWork { picture, width, height, frequency, time, frames, interval, .. } = *work;
    for (side, name) in [(width, "/width"), (height, "/height")] {
        if side == 0 {
            return Err(Problem::invalid("a picture has at least one column and one row").at(name));
        }
    }
    let elements = u64::from(width) * u64::from(height);
    if elements.saturating_mul(u64::from(frames.unwrap_or(1))) > memory / 8 {
        let most = memory / 8;
        return Err(
            Problem::too_large(format!("a picture may have {most} elements here, of all its frames")).at("/width")
        );
    }
    if frames == Some(0) {
        return Err(Problem::invalid("an animation has at least one frame").at("/frames"));
    }
    if picture == PictureName::PhiPattern && time != 0.0 {
        return Err(Problem::invalid("only the field has a time").at("/time"));
    }
    if picture == PictureName::PhiPattern && frames.is_some() {
        return Err(Problem::invalid("only the field moves").at("/frames"));
    }
    if interval.is_some() && frames.is_none() {
        return Err(Problem::invalid("only an animation has an interval").at("/interval"));
    }
    if interval.is_some_and(|seconds| !(seconds.is_finite() && seconds > 0.0 && seconds <= 1e3)) {
        return Err(Problem::invalid("an interval is above 0 and at most 1000 seconds").at("/interval"));
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

pub fn run(engine: &Engine, work: &PictureWork, steps: &Steps<'_>) -> Result<Output, Failure> {
    let PictureWork { picture, width, height, frequency, time, frames, interval, .. } = *work;
    let (width, height) = (width as usize, height as usize);
    if picture == PictureName::PhiPattern {
        return Ok(Output::of(&cantus::ops::field::phi_pattern(engine, width, height)?)?);
    }
    let params = FieldParams::new(width, height).frequency(frequency.map_or(Frequency::Love, Frequency::Hertz));
    let frame = |time: f64| Output::of(&cantus::ops::field::field(engine, &params.time(time))?);
    let Some(frames) = frames else { return Ok(frame(time)?) };
    let mut whole = Output {
        shape: Shape { dtype: "f32".to_owned(), shape: vec![frames as usize, height, width], hex: None },
        bytes: Vec::new(),
    };
    steps.blocks(frames as usize, 1, |block| {
        whole.bytes.extend(frame(time + interval.unwrap_or(1.0 / 30.0) * block.start as f64)?.bytes);
        Ok::<_, Failure>(())
    })?;
    Ok(whole)
}
