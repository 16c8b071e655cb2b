//! Samplers of a step or of `cantus run`, by WebGPU's words.

use cantus::kernel::{Reflection, SamplerBinding};
use cantus::{AddressMode, CompareFunction, Error, FilterMode, Result, Sampler};
use toml::Value;

use crate::parse;

/// All samplers of a kernel: as the table says, or the usual ones.
///
/// # Errors
/// [`Error::InvalidInput`] naming the sampler, the setting, and what there is instead.
pub fn all(reflection: &Reflection, table: &toml::Table) -> Result<Vec<(String, Sampler)>> {
    let names: Vec<&str> = reflection.samplers.iter().map(|binding| binding.name.as_str()).collect();
    if let Some(unknown) = table.keys().find(|name| !names.contains(&name.as_str())) {
        let near = parse::closest(unknown, &names);
        return Err(wrong(unknown, format!("the kernel has no such sampler{near}")));
    }
    let one = |binding: &SamplerBinding| {
        let given = table.get(&binding.name);
        let sampler = given.map_or_else(|| Ok(binding.usual()), |value| sampler(binding, value))?;
        Ok((binding.name.clone(), sampler))
    };
    reflection.samplers.iter().map(one).collect()
}

fn wrong(name: &str, reason: String) -> Error {
    Error::invalid(format!("sampler {name}"), reason)
}

fn sampler(binding: &SamplerBinding, value: &Value) -> Result<Sampler> {
    let name = binding.name.as_str();
    let mut sampler = binding.usual();
    let fields = match value {
        Value::String(_) => &toml::Table::from_iter([("filter".to_owned(), value.clone())]),
        Value::Table(fields) => fields,
        _ => return Err(wrong(name, "it takes \"linear\", \"nearest\" or a table of settings".to_owned())),
    };
    for (key, value) in fields {
        match key.as_str() {
            "filter" => {
                let filter = choice(name, key, value, FilterMode::ALL)?;
                (sampler.mag_filter, sampler.min_filter, sampler.mipmap_filter) = (filter, filter, filter);
            }
            "address" => {
                sampler.address_mode = match value.as_array().map(Vec::as_slice) {
                    None => [choice(name, key, value, AddressMode::ALL)?; 3],
                    Some([u, v, w]) => {
                        let mode = |value| choice(name, key, value, AddressMode::ALL);
                        [mode(u)?, mode(v)?, mode(w)?]
                    }
                    Some(_) => return Err(wrong(name, "address is one mode, or three for u, v and w".to_owned())),
                };
            }
            "compare" if binding.comparison => {
                sampler.compare = Some(choice(name, key, value, CompareFunction::ALL)?);
            }
            "compare" => return Err(wrong(name, "it is a sampler without a comparison".to_owned())),
            "lod" => {
                let number = |value: &Value| value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
                let pair = value.as_array().map(|pair| pair.iter().map(number).collect::<Vec<_>>());
                let Some([Some(least), Some(most)]) = pair.as_deref() else {
                    return Err(wrong(name, "lod is two levels of detail, as in [0, 4]".to_owned()));
                };
                if !(*least >= 0.0 && least <= most) {
                    return Err(wrong(name, format!("lod = [{least}, {most}] does not go up from 0 or more")));
                }
                (sampler.lod_min_clamp, sampler.lod_max_clamp) = (*least as f32, *most as f32);
            }
            _ => {
                let near = parse::closest(key, &["filter", "address", "compare", "lod"]);
                return Err(wrong(name, format!("there is no setting {key}{near}: filter, address, compare, lod")));
            }
        }
    }
    Ok(sampler)
}

fn choice<T: Copy>(name: &str, key: &str, value: &Value, all: &[(&str, T)]) -> Result<T> {
    let found = value.as_str().and_then(|text| all.iter().find(|(known, _)| *known == text));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(known, _)| *known).collect();
        wrong(name, format!("{key} = {value} is not one of {}", names.join(", ")))
    })
}
