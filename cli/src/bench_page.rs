//! The page of `cantus bench --html`: a plot of time by size for each operation, and one of bandwidth beside that of a copy. One file, which
//! needs nothing else.

use std::fmt::Write as _;
use std::io::Write as _;

use cantus::Result;
use serde_json::Value;

use super::output::OutputFile;

/// One figure.
pub struct Point {
    pub op: &'static str,
    pub device: String,
    pub elements: f64,
    pub milliseconds: f64,
    /// Half of the runs took between these.
    pub spread: [f64; 2],
    pub gb_per_s: Option<f64>,
    pub gflop_per_s: Option<f64>,
}

/// Colours that differ in lightness as well, for those who do not see all of them.
const COLOURS: [&str; 8] = ["#1f6feb", "#d1480f", "#2c8a4b", "#8a4fbf", "#b8860b", "#0e7c86", "#c2185b", "#5f6b7a"];
const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 220.0;
/// Room for the axes' words: left, right, top, bottom.
const MARGIN: [f64; 4] = [52.0, 18.0, 24.0, 34.0];

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1c2128; --faint: #8b949e; --line: #d0d7de; --page: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --faint: #7d8590; --line: #30363d; --page: #0d1117; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2.5rem; }
figure { margin: 0; } figcaption { font-weight: 600; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(21rem, 1fr)); gap: 1.5rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--faint); font-size: 11px; } .frame { stroke: var(--line); fill: none; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.5rem; padding: 0; list-style: none; }
.legend span { display: inline-block; width: .9rem; height: .9rem; border-radius: 50%; vertical-align: -2px; margin-right: .4rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; } td, th { padding: .2rem .8rem; border-bottom: 1px solid var(--line); text-align: right; }
td:first-child, th:first-child, td:last-child, th:last-child { text-align: left; } .wide { overflow-x: auto; }
";

/// Writes the page.
///
/// # Errors
/// When the file cannot be written.
pub fn write(mut file: OutputFile, machine: &Value, points: &[Point]) -> Result<()> {
    let text = page(machine, points);
    file.write_all(text.as_bytes()).map_err(|error| super::output::fault(file.shown(), &error))?;
    file.commit()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The distinct values in order of appearance.
fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

fn page(machine: &Value, points: &[Point]) -> String {
    let devices = distinct(points.iter().map(|point| point.device.as_str()));
    let ops = distinct(points.iter().map(|point| point.op));
    let colour = |device: &str| COLOURS[devices.iter().position(|known| *known == device).unwrap_or(0) % COLOURS.len()];
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>cantus bench</title>\n<style>{STYLE}</style>\n\
         </head>\n<body>\n<h1>cantus bench</h1>\n<p>{}, {} threads, {}, cantus {}</p>\n<ul class=\"legend\">\n",
        escaped(machine["processor"].as_str().unwrap_or("an unknown processor")),
        machine["threads"],
        escaped(machine["os"].as_str().unwrap_or("")),
        escaped(machine["cantus"].as_str().unwrap_or("")),
    );
    for device in &devices {
        let _ = writeln!(page, "<li><span style=\"background:{}\"></span>{}</li>", colour(device), escaped(device));
    }
    page.push_str("</ul>\n<h2>Time by size</h2>\n<p>Milliseconds, median, over elements of a side by side; both axes are logarithmic. Half of the runs lie within the stroke.</p>\n<div class=\"plots\">\n");
    for op in &ops {
        let lines: Vec<Line<'_>> = devices
            .iter()
            .map(|device| {
                let of = points.iter().filter(|point| point.op == *op && point.device == *device);
                Line {
                    colour: colour(device),
                    dashed: false,
                    places: of.clone().map(|point| (point.elements, point.milliseconds)).collect(),
                    spreads: of.map(|point| (point.elements, point.spread)).collect(),
                }
            })
            .collect();
        plot(&mut page, op, "ms", &lines);
    }
    growth(&mut page, points, &devices, &ops, colour);
    // Of what was measured: a filter may have left the copy out.
    let copied = points.iter().any(|point| point.op == "copy" && point.gb_per_s.is_some());
    let dashed = if copied { "; dashed: a copy on the same device, which is the upper bound" } else { "" };
    let _ = write!(
        page,
        "</div>\n<h2>Bandwidth</h2>\n<p>GB/s, counting the data that must be read and written, each once{dashed}.</p>\n<div class=\"plots\">\n"
    );
    for op in ops.iter().filter(|op| **op != "copy") {
        let mut lines = Vec::new();
        for device in &devices {
            let rates = |op: &str| {
                let of = points.iter().filter(|point| point.op == op && point.device == *device);
                of.filter_map(|point| Some((point.elements, point.gb_per_s?))).collect::<Vec<_>>()
            };
            lines.push(Line { colour: colour(device), dashed: false, places: rates(op), spreads: Vec::new() });
            lines.push(Line { colour: colour(device), dashed: true, places: rates("copy"), spreads: Vec::new() });
        }
        if lines.iter().any(|line| !line.dashed && !line.places.is_empty()) {
            plot(&mut page, op, "GB/s", &lines);
        }
    }
    page.push_str("</div>\n<h2>Figures</h2>\n<div class=\"wide\"><table>\n<tr><th>operation</th><th>elements</th><th>ms</th><th>low</th><th>high</th><th>GB/s</th><th>GFLOP/s</th><th>device</th></tr>\n");
    for point in points {
        let rate = |rate: Option<f64>| rate.map_or_else(String::new, |rate| format!("{rate:.1}"));
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{:.3}</td><td>{:.3}</td><td>{:.3}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            point.op,
            point.elements,
            point.milliseconds,
            point.spread[0],
            point.spread[1],
            rate(point.gb_per_s),
            rate(point.gflop_per_s),
            escaped(&point.device)
        );
    }
    page.push_str("</table></div>\n</body>\n</html>\n");
    page
}

/// Time for each element, where there are sizes enough to see how it grows.
fn growth<'a>(
    page: &mut String,
    points: &[Point],
    devices: &[&'a str],
    ops: &[&str],
    colour: impl Fn(&str) -> &'a str,
) {
    let of = |op: &str, device: &str| -> Vec<(f64, f64)> {
        let of = points.iter().filter(|point| point.op == op && point.device == device);
        of.map(|point| (point.elements, point.milliseconds * 1e6 / point.elements.max(1.0))).collect()
    };
    let shown: Vec<&&str> = ops.iter().filter(|op| devices.iter().any(|device| of(op, device).len() > 3)).collect();
    if shown.is_empty() {
        return;
    }
    page.push_str("</div>\n<h2>Growth</h2>\n<p>Nanoseconds for each element, over elements: falling while a call costs more than its work, level while memory holds the pace.</p>\n<div class=\"plots\">\n");
    for op in shown {
        let line = |device: &&'a str| Line {
            colour: colour(device),
            dashed: false,
            places: of(op, device),
            spreads: Vec::new(),
        };
        plot(page, op, "ns", &devices.iter().map(line).collect::<Vec<_>>());
    }
}

struct Line<'a> {
    colour: &'a str,
    dashed: bool,
    places: Vec<(f64, f64)>,
    /// The range over which a figure varies.
    spreads: Vec<(f64, [f64; 2])>,
}

/// The powers of ten around some values.
fn decades(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let positive = values.filter(|value| *value > 0.0);
    let low = positive.clone().fold(f64::INFINITY, f64::min).log10().floor();
    let high = positive.fold(0.0_f64, f64::max).log10().ceil();
    if low.is_finite() && high.is_finite() { (low, high.max(low + 1.0)) } else { (0.0, 1.0) }
}

fn plot(page: &mut String, name: &str, unit: &str, lines: &[Line<'_>]) {
    let all = || lines.iter().flat_map(|line| line.places.iter().copied());
    let (x_low, x_high) = decades(all().map(|(x, _)| x));
    let (y_low, y_high) = decades(all().map(|(_, y)| y));
    let [left, right, top, bottom] = MARGIN;
    let x_at = |x: f64| left + (x.log10() - x_low) / (x_high - x_low) * (WIDTH - left - right);
    let y_at = |y: f64| HEIGHT - bottom - (y.log10() - y_low) / (y_high - y_low) * (HEIGHT - top - bottom);
    let _ = write!(
        page,
        "<figure><figcaption>{name}</figcaption><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{name}: {unit} by elements\">"
    );
    for decade in x_low as i32..=x_high as i32 {
        let (x, to) = (x_at(10_f64.powi(decade)), HEIGHT - bottom);
        let _ = write!(
            page,
            "<path class=\"frame\" d=\"M{x:.1} {top}V{to}\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">1e{decade}</text>",
            to + 15.0
        );
    }
    for decade in y_low as i32..=y_high as i32 {
        let (y, to) = (y_at(10_f64.powi(decade)), WIDTH - right);
        let label = 10_f64.powi(decade);
        let _ = write!(
            page,
            "<path class=\"frame\" d=\"M{left} {y:.1}H{to}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            left - 6.0,
            y + 4.0
        );
    }
    // Above the highest label, which stands at the plot's upper edge.
    let _ = write!(page, "<text x=\"{:.1}\" y=\"10\" text-anchor=\"end\">{unit}</text>", left - 6.0);
    for line in lines {
        let places: Vec<String> = line
            .places
            .iter()
            .filter(|(_, y)| *y > 0.0)
            .map(|&(x, y)| format!("{:.1} {:.1}", x_at(x), y_at(y)))
            .collect();
        if places.is_empty() {
            continue;
        }
        let dash = if line.dashed { " stroke-dasharray=\"3 4\" opacity=\".6\"" } else { "" };
        let path = match (&places[..], line.places.first()) {
            // One size alone: a line across, at its height.
            ([_], Some(&(_, y))) if line.dashed => format!("{left} {:.1}H{}", y_at(y), WIDTH - right),
            _ => places.join("L"),
        };
        let _ = write!(page, "<path d=\"M{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{dash}/>", line.colour);
        for &(x, [low, high]) in line.spreads.iter().filter(|(_, [low, _])| *low > 0.0) {
            let (x, from, to) = (x_at(x), y_at(low), y_at(high));
            let _ = write!(
                page,
                "<path d=\"M{x:.1} {from:.1}V{to:.1}\" stroke=\"{}\" stroke-width=\"5\" opacity=\".4\"/>",
                line.colour
            );
        }
        if !line.dashed {
            for place in &places {
                if let Some((x, y)) = place.split_once(' ') {
                    let _ = write!(page, "<circle cx=\"{x}\" cy=\"{y}\" r=\"3\" fill=\"{}\"/>", line.colour);
                }
            }
        }
    }
    page.push_str("</svg></figure>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(op: &'static str, elements: f64, gb_per_s: Option<f64>) -> Point {
        Point {
            op,
            device: "cpu 0: x".to_owned(),
            elements,
            milliseconds: 1.0,
            spread: [0.9, 1.2],
            gb_per_s,
            gflop_per_s: None,
        }
    }

    #[test]
    fn the_copy_is_drawn_where_it_is_promised() {
        let of = |points: &[Point]| page(&Value::Null, points);
        let alone = of(&[point("add", 512.0, Some(3.0))]);
        assert!(alone.contains("<h2>Bandwidth</h2>") && !alone.contains("dash"), "{alone}");
        // One size: a line across; several: through them.
        let one = of(&[point("add", 512.0, Some(3.0)), point("copy", 512.0, Some(9.0))]);
        assert!(one.contains("dashed: a copy on the same device"), "{one}");
        let line = one.lines().flat_map(|line| line.split("<path ")).find(|path| path.contains("stroke-dasharray"));
        assert!(line.is_some_and(|line| line.contains('H')), "{one}");
        let two = [("add", 512.0), ("copy", 512.0), ("add", 2048.0), ("copy", 2048.0)];
        let two = of(&two.map(|(op, elements)| point(op, elements, Some(elements / 100.0))));
        let line = two.split("<path ").find(|path| path.contains("stroke-dasharray"));
        assert!(line.is_some_and(|line| line.contains('L')), "{two}");
        assert!(!two.contains("<h2>Growth</h2>"), "{two}");
        let many = of(&[8, 9, 10, 11].map(|power| point("add", f64::from(1 << power), None)));
        assert!(many.contains("<h2>Growth</h2>") && many.contains("aria-label=\"add: ns by elements\""), "{many}");
        let none = of(&[point("add", 512.0, Some(3.0)), point("copy", 512.0, None)]);
        assert!(!none.contains("dash"), "{none}");
    }
}
