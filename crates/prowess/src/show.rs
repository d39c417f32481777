//! A turn at the terminal: events in, text on stdout and stderr out.

mod call;
mod inline;
mod live;
mod markdown;
mod spinner;
mod turn;

use std::future::Future;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anstream::{AutoStream, ColorChoice};
use prowess_agent::event::{Event, Events};
use prowess_exec::approver::{Approver, ToolQuestion};
use prowess_policy::{Answer, Question};

pub(crate) use call::{failure, label, mark};
use live::{Live, Size};
pub(crate) use markdown::{Look, Markdown};
use spinner::Spinner;
pub(crate) use turn::{Detail, tokens};
use turn::{Flow, Step, Turn};

use crate::output::{BOLD, paint};
use crate::wrap::{stderr_columns, stdout_columns, wrap_message};

/// Shows a turn while it runs. Clones show on the same terminal.
#[derive(Clone)]
pub(crate) struct Printer(Arc<Mutex<Screen>>);

struct Screen {
    turn: Turn,
    /// The last line of an answer, where it can be painted over.
    live: Option<Live>,
    spinner: Spinner,
}

impl Printer {
    /// For the terminal of this process, or whatever its output goes to.
    pub(crate) fn new(detail: Detail, home: &Path) -> Self {
        let stdout = std::io::stdout();
        let look = match AutoStream::choice(&stdout) {
            ColorChoice::Never => Look::Plain,
            ColorChoice::Auto | ColorChoice::AlwaysAnsi | ColorChoice::Always => Look::Styled,
        };
        let flow = if stdout.is_terminal() { Flow::Stream } else { Flow::Whole };
        let can_repaint = stdout.is_terminal() && std::env::var_os("TERM").is_some_and(|kind| kind != "dumb");
        let live = can_repaint.then(Live::default);
        let turn = Turn::new(look, detail, flow, home).wrapped(stdout_columns);
        Self(Arc::new(Mutex::new(Screen { turn, live, spinner: Spinner::default() })))
    }

    /// Hears what happens in a turn.
    pub(crate) fn events(&self) -> Events {
        let printer = self.clone();
        Events::to(move |event| printer.show(&event))
    }

    /// Shows one event.
    pub(crate) fn show(&self, event: &Event) {
        let mut screen = self.screen();
        for step in screen.turn.take(event) {
            screen.perform(&step);
        }
    }

    /// The lines that one event adds, for a terminal whose last line is being typed.
    pub(crate) fn lines(&self, event: &Event) -> String {
        let mut screen = self.screen();
        let mut text = String::new();
        for step in screen.turn.take(event) {
            match step {
                Step::Answer(lines) => text.push_str(&lines),
                Step::Note(line) => {
                    text.push_str(&wrap_message(&line, stderr_columns(), "  "));
                    text.push('\n');
                }
                Step::Growing(_) | Step::Busy(_) | Step::Idle => {}
            }
        }
        match AutoStream::choice(&std::io::stdout()) {
            ColorChoice::Never => anstream::adapter::strip_str(&text).to_string(),
            ColorChoice::Auto | ColorChoice::AlwaysAnsi | ColorChoice::Always => text,
        }
    }

    /// Shows what a person said, for who was not there.
    pub(crate) fn said(&self, text: &str) {
        let mut cleaned = Markdown::new(Look::Plain);
        let text = cleaned.push(text) + &cleaned.finish();
        let mut screen = self.screen();
        for (index, line) in text.lines().enumerate() {
            let mark = if index == 0 { "> " } else { "  " };
            screen.perform(&Step::Note(paint(BOLD, &format!("{mark}{line}"))));
        }
    }

    /// Keeps the spinner out of the way of a question.
    pub(crate) fn hushed(&self) -> Hush {
        Hush::new(self)
    }

    fn screen(&self) -> MutexGuard<'_, Screen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Screen {
    fn perform(&mut self, step: &Step) {
        match step {
            Step::Answer(lines) => {
                self.spinner.stop();
                let hidden = self.live.as_mut().map_or_else(String::new, |live| live.hide(size()));
                print(&format!("{hidden}{lines}"));
            }
            Step::Growing(text) => {
                let Some(live) = &mut self.live else { return };
                if !text.is_empty() {
                    self.spinner.stop();
                }
                print(&live.show(text, size()));
            }
            Step::Note(line) => self.spinner.aside(|| {
                // Nothing is left to do when stderr has gone away.
                let _ = writeln!(anstream::stderr(), "{}", wrap_message(line, stderr_columns(), "  "));
            }),
            Step::Busy(label) => self.spinner.turn(label),
            Step::Idle => self.spinner.stop(),
        }
    }
}

/// Writes to stdout as it is: what is styled was styled for it. A reader that has gone away stops no turn.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn size() -> Size {
    let (columns, rows) = terminal_size::terminal_size().map_or((80, 24), |(width, height)| (width.0, height.0));
    Size { columns: columns.into(), rows: rows.into() }
}

/// Asks somebody while the spinner is out of the way.
pub(crate) struct Unspun {
    approver: Arc<dyn Approver>,
    printer: Printer,
}

impl Unspun {
    pub(crate) fn new(approver: Arc<dyn Approver>, printer: &Printer) -> Self {
        Self { approver, printer: printer.clone() }
    }
}

impl Approver for Unspun {
    fn ask<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        Box::pin(async move { Hush::new(&self.printer).until(self.approver.ask(question)).await })
    }

    fn ask_tool<'a>(&'a self, question: &'a ToolQuestion) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        Box::pin(async move { Hush::new(&self.printer).until(self.approver.ask_tool(question)).await })
    }

    fn nobody(&self) -> Option<&'static str> {
        self.approver.nobody()
    }
}

/// Keeps the spinner away for as long as it lives, also when nobody waits for the answer any more.
pub(crate) struct Hush {
    printer: Printer,
    is_over: bool,
}

impl Hush {
    fn new(printer: &Printer) -> Self {
        printer.screen().spinner.hush();
        Self { printer: printer.clone(), is_over: false }
    }

    /// Until the answer is there.
    pub(crate) async fn until<T>(mut self, answer: impl Future<Output = T>) -> T {
        let answer = answer.await;
        self.is_over = true;
        answer
    }
}

impl Drop for Hush {
    fn drop(&mut self) {
        let mut screen = self.printer.screen();
        if !self.is_over {
            // What comes next does not begin in the line of the question. Nothing is left to do when stderr has gone.
            let _ = writeln!(anstream::stderr());
        }
        screen.spinner.unhush();
    }
}
