//! The picture of a state: devices, the selected one's graphs and details, engines. Columns that do not fit are left out, least needed first.

use cantus_monitor::{Device, Sample};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph, Sparkline, Wrap};

use super::screen::{Series, State};
use super::table::{NO_ENGINE, bytes, details, engine_row, figure, rate};
use crate::report::short;

const HELP: &str = "\
q, Esc     end
↑ ↓, k j   select a device
s          sort the engines
p, space   pause
?          this

A dash is what nobody tells; the details of the selected device say why.
Engines show here when they publish: CANTUS_PUBLISH=1.";

/// A column: its head, whether its text is aligned right, and how early it is left out (0 stays).
struct Column {
    head: &'static str,
    right: bool,
    rank: u8,
}

const fn column(head: &'static str, right: bool, rank: u8) -> Column {
    Column { head, right, rank }
}

const DEVICES: [Column; 8] = [
    column("DEVICE", false, 0),
    column("LOAD", true, 0),
    column("", false, 6),
    column("USED", true, 1),
    column("MEMORY", true, 2),
    column("TEMP", true, 3),
    column("POWER", true, 4),
    column("CLOCK", true, 5),
];

const ENGINES: [Column; 9] = [
    column("PROCESS", true, 0),
    column("PROGRAM", false, 1),
    column("DEVICE", false, 7),
    column("KERNELS/s", true, 0),
    column("QUEUE", true, 3),
    column("IN USE", true, 2),
    column("POOL", true, 5),
    column("FALLBACKS", true, 6),
    column("FAILURES", true, 4),
];

pub fn all(frame: &mut Frame, state: &State) {
    let area = frame.area();
    if area.width < 12 || area.height < 3 {
        frame.render_widget(Paragraph::new("too small"), area);
        return;
    }
    let count = state.sample.as_ref().map_or(0, |sample| sample.devices.len());
    let engines = state.sample.as_ref().map_or(1, |sample| sample.engines.len().max(1));
    let tight = area.height < 18;
    let device_rows = u16::try_from(count + 1).unwrap_or(u16::MAX).min((area.height / 3).max(2));
    let engine_rows = u16::try_from(engines + 2).unwrap_or(u16::MAX).min((area.height / 3).max(2));
    let [head, devices, middle, engines, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(device_rows),
        Constraint::Min(0),
        Constraint::Length(engine_rows),
        Constraint::Length(1),
    ])
    .areas(area);
    heading(frame, state, head);
    frame.render_widget(Paragraph::new(dim(state, " q end  ↑↓ select  s sort  p pause  ? help")), foot);
    let Some(sample) = &state.sample else {
        frame.render_widget(Paragraph::new("looking …"), devices);
        return;
    };
    device_table(frame, state, sample, devices);
    if let Some(device) = sample.devices.get(state.selected) {
        one_device(frame, state, device, middle, tight);
    }
    engine_table(frame, state, sample, engines);
    if state.help {
        help(frame, area);
    }
}

fn style(state: &State, colour: Color) -> Style {
    if state.colour { Style::new().fg(colour) } else { Style::new() }
}

fn dim<'a>(state: &State, text: &'a str) -> Span<'a> {
    Span::styled(text, style(state, Color::Gray))
}

/// Green, yellow and red by thirds; the number beside it says the same.
fn heat(state: &State, percent: f64) -> Style {
    let colour = match percent {
        percent if percent >= 85.0 => Color::Red,
        percent if percent >= 50.0 => Color::Yellow,
        _ => Color::Green,
    };
    style(state, colour)
}

fn heading(frame: &mut Frame, state: &State, area: Rect) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut line = vec![Span::styled(" cantus top ", bold)];
    if state.paused {
        line.push(Span::styled(" PAUSED ", bold.add_modifier(Modifier::REVERSED)));
    }
    let figures = state.sample.as_ref().map(|sample| {
        let total: f64 = sample.engines.iter().map(|engine| engine.dispatches_per_second).sum();
        let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        let (devices, engines) = (plural(sample.devices.len(), "device"), plural(sample.engines.len(), "engine"));
        let every = state.interval.as_secs_f64();
        format!(" {devices}, {engines}, {} kernels/s, every {every:.1} s", rate(total))
    });
    line.push(Span::raw(figures.unwrap_or_default()));
    frame.render_widget(Paragraph::new(Line::from(line)), area);
}

/// Draws rows under heads, the columns as wide as their widest text, the first one with what is left over.
fn columns(frame: &mut Frame, area: Rect, heads: &[Column], rows: &[Vec<Span>], selected: Option<usize>, wide: usize) {
    let width_of = |at: usize, head: &Column| {
        let texts = rows.iter().filter_map(|row| row.get(at)).map(Span::width);
        texts.chain([head.head.chars().count()]).max().unwrap_or_default()
    };
    let mut widths: Vec<Option<usize>> = heads.iter().enumerate().map(|(at, head)| Some(width_of(at, head))).collect();
    let room = usize::from(area.width).saturating_sub(1);
    let needed = |widths: &[Option<usize>]| -> usize { widths.iter().flatten().map(|width| width + 2).sum::<usize>() };
    // The wide column gives way first, down to a dozen characters; then whole columns go.
    let give_way = |widths: &mut Vec<Option<usize>>| {
        let over = needed(widths).saturating_sub(room);
        if let Some(Some(width)) = widths.get_mut(wide) {
            *width = width.saturating_sub(over).max((*width).min(12));
        }
    };
    give_way(&mut widths);
    for rank in (1..=8).rev() {
        if needed(&widths) <= room {
            break;
        }
        for (width, head) in widths.iter_mut().zip(heads) {
            if head.rank == rank {
                *width = None;
            }
        }
    }
    if let (Some(Some(width)), true) = (widths.get(wide).copied(), needed(&widths) < room) {
        let natural = heads.get(wide).map_or(width, |head| width_of(wide, head));
        let spare = room - needed(&widths);
        if let Some(width_of_wide) = widths.get_mut(wide) {
            *width_of_wide = Some((width + spare).min(natural));
        }
    }
    let line = |cells: Vec<Span<'static>>, base: Style| {
        let mut spans = vec![Span::styled(" ", base)];
        for ((cell, width), head) in cells.into_iter().zip(&widths).zip(heads) {
            let Some(width) = *width else { continue };
            let text = short(&cell.content, width);
            let gap = " ".repeat(width.saturating_sub(text.chars().count()));
            let text = if head.right { format!("{gap}{text}  ") } else { format!("{text}{gap}  ") };
            spans.push(Span::styled(text, base.patch(cell.style)));
        }
        // A selected row is marked to the edge.
        let used: usize = spans.iter().map(Span::width).sum();
        spans.push(Span::styled(" ".repeat(usize::from(area.width).saturating_sub(used)), base));
        Line::from(spans)
    };
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let heads_line = heads.iter().map(|head| Span::raw(head.head)).collect();
    let mut lines = vec![line(heads_line, bold)];
    // The selected row stays in sight.
    let fits = usize::from(area.height).saturating_sub(1);
    let skipped = selected.map_or(0, |selected| (selected + 1).saturating_sub(fits));
    for (at, row) in rows.iter().enumerate().skip(skipped) {
        let base = if selected == Some(at) { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        let owned = row.iter().map(|cell| Span::styled(cell.content.to_string(), cell.style)).collect();
        lines.push(line(owned, base));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// Ten characters full of a share.
fn bar(percent: f64) -> String {
    let eighths = (percent.clamp(0.0, 100.0) * 0.8).round() as usize;
    let parts = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let part = parts.get(eighths % 8).filter(|_| !eighths.is_multiple_of(8));
    let text: String = std::iter::repeat_n('█', eighths / 8).chain(part.copied()).collect();
    format!("{text:·<10}")
}

fn device_table(frame: &mut Frame, state: &State, sample: &Sample, area: Rect) {
    let rows = sample.devices.iter().map(|device| {
        let load = device.utilisation_percent.value().copied();
        let heat = load.map_or(Style::new(), |load| heat(state, load));
        vec![
            Span::raw(device.name.clone()),
            Span::styled(figure(&device.utilisation_percent, 0, " %"), heat),
            Span::styled(load.map_or_else(|| "-".to_owned(), bar), heat),
            Span::raw(bytes(&device.memory_used_bytes)),
            Span::raw(bytes(&device.memory_total_bytes)),
            Span::raw(figure(&device.temperature_celsius, 0, " °C")),
            Span::raw(figure(&device.power_watts, 1, " W")),
            Span::raw(figure(&device.clock_mhz, 0, " MHz")),
        ]
    });
    let rows: Vec<Vec<Span>> = rows.collect();
    columns(frame, area, &DEVICES, &rows, Some(state.selected), 0);
}

fn one_device(frame: &mut Frame, state: &State, device: &Device, area: Rect, tight: bool) {
    if area.height < 2 {
        return;
    }
    let block = Block::new().borders(Borders::TOP).border_style(style(state, Color::Gray));
    let block = block.title(format!(
        " {} (by {}) ",
        short(&device.name, usize::from(area.width).saturating_sub(16)),
        device.source
    ));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let [graphs, words] = if tight || inner.height < 6 || inner.width < 30 {
        Layout::vertical([Constraint::Length(0), Constraint::Min(0)]).areas(inner)
    } else {
        Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(inner)
    };
    let lines: Vec<Line> = details(device).into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: true }), words);
    let key = (state.selected, device.name.clone());
    let Some([load, memory]) = state.devices.get(&key) else { return };
    let [first, second, third] = Layout::vertical([Constraint::Fill(1); 3]).areas(graphs);
    graph(frame, state, first, "load %", load, Some(100.0), Color::Green);
    graph(frame, state, second, "memory %", memory, Some(100.0), Color::Cyan);
    graph(frame, state, third, "kernels/s", &state.rate, None, Color::Magenta);
}

/// The last looks that fit, the newest at the right edge.
fn graph(frame: &mut Frame, state: &State, area: Rect, name: &str, series: &Series, most: Option<f64>, colour: Color) {
    if area.height == 0 || area.width < 14 {
        return;
    }
    let [label, picture, _] =
        Layout::horizontal([Constraint::Length(11), Constraint::Min(1), Constraint::Length(2)]).areas(area);
    let last = series.back().copied().unwrap_or_default();
    let lines = vec![Line::from(format!(" {name}")), Line::from(format!(" {}", rate(last)))];
    frame.render_widget(Paragraph::new(lines), label);
    let width = usize::from(picture.width);
    let shown = series.iter().skip(series.len().saturating_sub(width)).map(|value| (value.max(0.0) * 100.0) as u64);
    let data: Vec<u64> = std::iter::repeat_n(0, width.saturating_sub(series.len())).chain(shown).collect();
    let mut line = Sparkline::default().data(data).style(style(state, colour));
    if let Some(most) = most {
        line = line.max((most * 100.0) as u64);
    }
    frame.render_widget(line, picture);
}

fn engine_table(frame: &mut Frame, state: &State, sample: &Sample, area: Rect) {
    let block = Block::new().borders(Borders::TOP).border_style(style(state, Color::Gray));
    let block = block.title(format!(" engines, by {} ", state.order.name()));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if sample.engines.is_empty() {
        frame.render_widget(Paragraph::new(dim(state, NO_ENGINE)).wrap(Wrap { trim: true }), inner);
        return;
    }
    let rows = sample.engines.iter().map(|engine| {
        let bad = engine.figures.failures > 0 || engine.figures.losses > 0;
        let warning = if bad { style(state, Color::Red).add_modifier(Modifier::BOLD) } else { Style::new() };
        let mut row: Vec<Span> = engine_row(engine).into_iter().map(Span::raw).collect();
        if let Some(last) = row.last_mut() {
            last.style = warning;
        }
        row
    });
    let rows: Vec<Vec<Span>> = rows.collect();
    columns(frame, inner, &ENGINES, &rows, None, 2);
}

fn help(frame: &mut Frame, area: Rect) {
    let width = area.width.min(60);
    let height = area.height.min(12);
    let place = Rect::new((area.width - width) / 2, (area.height - height) / 2, width, height);
    frame.render_widget(Clear, place);
    let block = Block::bordered().title(" keys ");
    frame.render_widget(Paragraph::new(HELP).wrap(Wrap { trim: false }).block(block), place);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cantus_monitor::{Monitor, Sources};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::*;

    /// An engine's file as an engine writes it, held locked by this test.
    fn engine(folder: &std::path::Path, name: &str, text: &str) -> std::fs::File {
        let lock = std::fs::File::create(folder.join(format!("{name}.lock"))).expect("is made");
        lock.try_lock().expect("is free");
        std::fs::write(folder.join(format!("{name}.json")), text).expect("is written");
        lock
    }

    fn figures(process: u32, dispatches: u64, failures: u64) -> String {
        format!(
            r#"{{"process":{process},"program":"a program with a long name","engine":1,"age":2.0,"selected":"GPU of \u001b[31mred","devices":[
            {{"backend":"cpu","index":0,"name":"x","recorded":3,"in_flight":1,"in_use":1048576,"pooled":2048,"peak":9,"limit":null,"lost":null}}],
            "kernels":[],"dispatches":{dispatches},"fallbacks":0,"failures":{failures},"losses":0,"events":[]}}"#
        )
    }

    fn state(folder: &std::path::Path) -> State {
        let sources = Sources {
            nvml: Some("/nowhere".into()),
            sysfs: folder.join("none"),
            published: folder.into(),
            vulkan: false,
        };
        let mut monitor = Monitor::new(sources);
        let mut state = State::new(Duration::from_secs(1), true);
        state.add(monitor.sample());
        std::thread::sleep(Duration::from_millis(250));
        state.add(monitor.sample());
        state
    }

    fn drawn(state: &State, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("is made");
        terminal.draw(|frame| all(frame, state)).expect("draws");
        let buffer = terminal.backend().buffer();
        let rows = buffer.content().chunks(usize::from(width.max(1)));
        rows.map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect()).collect()
    }

    fn key(state: &mut State, code: KeyCode) -> bool {
        state.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn what_is_needed_most_stays_at_every_size() {
        let folder = tempfile::tempdir().expect("is made");
        let _locks =
            [engine(folder.path(), "10-1", &figures(10, 500, 0)), engine(folder.path(), "11-1", &figures(11, 4000, 7))];
        let mut state = state(folder.path());
        let wide = drawn(&state, 120, 40).join("\n");
        for word in
            ["DEVICE", "LOAD", "MEMORY", "CLOCK", "KERNELS/s", "FAILURES", "a program with", "1.0 MiB", "load %"]
        {
            assert!(wide.contains(word), "{word} is missing:\n{wide}");
        }
        assert!(!wide.contains('\u{1b}'), "control characters are drawn");
        let narrow = drawn(&state, 40, 12).join("\n");
        for word in ["LOAD", "KERNELS/s", " 10", " 11"] {
            assert!(narrow.contains(word), "{word} is missing:\n{narrow}");
        }
        for help in [false, true] {
            state.help = help;
            for width in (0..28).chain((28..=130).step_by(17)) {
                for height in (0..20).chain([24, 31, 45]) {
                    drawn(&state, width, height);
                }
            }
        }
    }

    #[test]
    fn keys_select_sort_pause_and_end() {
        let folder = tempfile::tempdir().expect("is made");
        let _locks =
            [engine(folder.path(), "10-1", &figures(10, 500, 0)), engine(folder.path(), "11-1", &figures(11, 4000, 7))];
        let mut state = state(folder.path());
        let order = |state: &State| -> Vec<u32> {
            state.sample.iter().flat_map(|sample| &sample.engines).map(|engine| engine.figures.process).collect()
        };
        assert_eq!(order(&state), [10, 11]);
        for _ in 0..3 {
            assert!(key(&mut state, KeyCode::Char('s')));
        }
        assert_eq!(order(&state), [11, 10], "by failures");
        assert!(key(&mut state, KeyCode::Up) && key(&mut state, KeyCode::Down));
        assert_eq!(state.selected, 0, "there is one device");
        assert!(key(&mut state, KeyCode::Char('p')));
        let sample = state.sample.clone();
        let mut other = sample.clone().expect("there is one");
        other.engines.clear();
        state.add(other);
        assert_eq!(state.sample, sample, "paused");
        assert!(drawn(&state, 80, 24)[0].contains("PAUSED"));
        assert!(key(&mut state, KeyCode::Char('?')) && state.help);
        assert!(key(&mut state, KeyCode::Esc) && !state.help, "it closes the help first");
        assert!(!key(&mut state, KeyCode::Char('q')));
    }

    #[test]
    fn without_colour_nothing_is_coloured() {
        let folder = tempfile::tempdir().expect("is made");
        let mut state = state(folder.path());
        let coloured = |state: &State| {
            let mut terminal = Terminal::new(TestBackend::new(100, 30)).expect("is made");
            terminal.draw(|frame| all(frame, state)).expect("draws");
            terminal.backend().buffer().content().iter().any(|cell| cell.fg != Color::Reset)
        };
        assert!(coloured(&state));
        state.colour = false;
        assert!(!coloured(&state));
    }
}
