//! The listener: the thread that notices changes.
//!
//! It arms its ears by the newest plan, waits, and refreshes when a burst is over. Whenever it had to watch a folder anew,
//! something may have happened there unheard, so it looks again at once: a folder that is made and filled in one go is
//! seen, however fast that was.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Cause, Shared};
use crate::watch::{Armed, Coalescer, Ears, Heard, Means, Plan, Settings, Until};

/// How often in a row it looks again because of new folders, before it waits for a pause like after any change.
const MAX_ROUNDS: usize = 4;
/// How long changes may pile up before they are heard: a storm must not wake us for each of its drops.
/// A quarter of the quiet that ends a burst, within these bounds.
const SLICES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));
/// How much longer than a look itself the pause between two looks is, where the disk is asked now and then.
const EASE: u32 = 20;

/// Starts the thread. It ends when the bell rings and it is over.
pub(super) fn spawn(shared: Arc<Shared>, ears: Ears) -> io::Result<JoinHandle<()>> {
    let builder = std::thread::Builder::new().name("prowess-watch".to_owned());
    builder.spawn(move || Listener::new(shared, ears).run())
}

struct Listener {
    shared: Arc<Shared>,
    ears: Ears,
    settings: Settings,
    coalescer: Coalescer,
    heard: Heard,
    /// The plan that the ears follow, and how far they can.
    plan: Option<Arc<Plan>>,
    armed: Armed,
    /// Whether watches may be dead or on the wrong folder.
    is_reshaped: bool,
    /// When the disk was last looked at, and how long that took.
    looked: (Instant, Duration),
}

impl Listener {
    fn new(shared: Arc<Shared>, ears: Ears) -> Self {
        let settings = shared.desk().settings();
        Self {
            shared,
            ears,
            settings,
            coalescer: Coalescer::new(settings.quiet),
            heard: Heard::default(),
            plan: None,
            armed: Armed::default(),
            is_reshaped: false,
            looked: (Instant::now(), Duration::ZERO),
        }
    }

    fn run(mut self) {
        while !self.is_over() {
            self.follow();
            let woken = self.wait();
            if self.ears.hear(&mut self.heard) {
                self.coalescer.note(woken);
            }
            let now = Instant::now();
            if self.coalescer.take(now) || self.next_look().is_some_and(|next| next <= now) {
                self.look();
            }
        }
    }

    fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::SeqCst)
    }

    /// Brings the ears in line with settings and plan, which others may have changed.
    fn follow(&mut self) {
        for _ in 0..MAX_ROUNDS {
            let desk = self.shared.desk();
            let plan = desk.plan();
            self.settings = desk.settings();
            drop(desk);
            self.coalescer.set_quiet(self.settings.quiet);
            if !self.settings.is_on || self.settings.means == Means::Polling {
                self.rest();
                return;
            }
            let is_followed = self.plan.as_ref().is_some_and(|known| Arc::ptr_eq(known, &plan));
            if is_followed && !self.is_reshaped {
                return;
            }
            self.arm(plan);
            if self.armed.new == 0 || self.is_over() {
                return;
            }
            self.look();
        }
        // Whatever goes on there, it goes on.
        self.is_reshaped = true;
        self.coalescer.note(Instant::now());
    }

    fn arm(&mut self, plan: Arc<Plan>) {
        self.armed = self.ears.arm(&plan);
        self.plan = Some(plan);
        self.is_reshaped = false;
        self.shared.note_watches(self.armed.watches, self.means());
    }

    /// Watches nothing.
    fn rest(&mut self) {
        self.ears.disarm();
        (self.plan, self.armed) = (None, Armed::default());
        self.shared.note_watches(0, self.means());
    }

    /// What it has to make do with.
    fn means(&self) -> Means {
        if self.settings.is_on && self.armed.is_partial { Means::Polling } else { self.settings.means }
    }

    /// Waits until there is something to do or to hear, and says when that was.
    fn wait(&mut self) -> Instant {
        let slice = (self.settings.quiet / 4).clamp(SLICES.0, SLICES.1);
        if let Some(due) = self.coalescer.due() {
            let left = due.saturating_duration_since(Instant::now());
            self.ears.wait(Until::Rung, Some(left.min(slice)));
            return Instant::now();
        }
        let left = self.next_look().map(|next| next.saturating_duration_since(Instant::now()));
        self.ears.wait(Until::Anything, left);
        let woken = Instant::now();
        if !self.is_over() {
            self.ears.wait(Until::Rung, Some(slice));
        }
        woken
    }

    /// When the disk is to be asked, where it has to be.
    fn next_look(&self) -> Option<Instant> {
        let (at, took) = self.looked;
        let pause = self.settings.interval.max(took.saturating_mul(EASE));
        (self.settings.is_on && self.means() == Means::Polling).then(|| at + pause)
    }

    fn look(&mut self) {
        let began = Instant::now();
        let heard = std::mem::take(&mut self.heard);
        self.is_reshaped |= heard.is_shape;
        let mut desk = self.shared.desk();
        self.shared.refresh(&mut desk, Cause::Disk, heard);
        drop(desk);
        self.looked = (Instant::now(), began.elapsed());
    }
}
