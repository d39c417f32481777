//! The judge: may this command run, and if not, why not?
//!
//! A pure function over values: the rules, the request, and a [`Lookup`] that knows what names mean on the machine that
//! will run it. Every segment must be covered by a rule of its own, and the text as a whole must be free of doubt; the
//! verdict is the worst of all that was found. Nothing is allowed because nothing speaks against it.

mod builtin;
mod objection;
mod pins;
mod segment;

use std::path::PathBuf;

use serde::Serialize;

use crate::approvals::Entry;
use crate::disguise;
use crate::lease::Lease;
use crate::lookup::{Lookup, Program};
use crate::permit::{Basis, Binding, Dialect, Permit, Pin, Question, Shell, Template};
use crate::posture::{Ask, Posture, Security};
use crate::safe_bin::SafeBins;
use crate::script::{Expansion, Joint, RedirectKind, Script, Span, Value, Word};

use crate::wants::{Ground, lacks, wants};
use crate::wrapper::is_harmless_assignment;
pub use objection::Objection;
use segment::Bench;

/// The answer, mildest first: the greater wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It may run.
    Allow,
    /// A person has to say.
    Ask,
    /// It may not run.
    Deny,
}

/// A program that a skill brings or needs, where the machine found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillBin {
    /// The name it is called by.
    pub name: String,
    /// Its path without links, at the time it was recorded.
    pub real: PathBuf,
}

/// What the judge goes by.
#[derive(Debug, Clone)]
pub struct Rules {
    /// How strict to be, and when to ask.
    pub posture: Posture,
    /// Programs that may run.
    pub allowlist: Vec<Entry>,
    /// Programs that may run when they only read their input.
    pub safe_bins: SafeBins,
    /// Programs of skills; they count only where [`Posture::auto_allow_skills`] is on.
    pub skill_bins: Vec<SkillBin>,
    /// The home that `~` stands for in patterns.
    pub home: PathBuf,
    /// Where the command can go without asking.
    pub ground: Ground,
}

/// What somebody wants to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The command, where and for whom.
    pub binding: Binding,
    /// The shell that would run it.
    pub shell: Shell,
    /// Variables that the caller gives it.
    pub variables: Vec<(String, String)>,
    /// Where the programs are that its names mean.
    pub place: ProgramPlace,
}

/// Where programs are looked up, and where they would run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramPlace {
    /// On this machine, both.
    Here,
    /// They run in a container, whose programs nobody looked at.
    Container,
}

/// Why a segment may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "by", rename_all = "camelCase")]
pub enum Cover {
    /// This entry of the allowlist.
    Allowlist {
        /// Its pattern.
        pattern: String,
        /// Its id.
        id: String,
    },
    /// A safe program with harmless arguments.
    SafeBin,
    /// A program of a skill.
    SkillBin,
    /// A harmless command of the shell itself.
    Builtin,
    /// The sandbox: whatever it does stays inside.
    Sandbox,
}

/// One simple command with what was found out about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// Where it stands; `None` for commands of a script within the script.
    pub span: Option<Span>,
    /// As written.
    pub text: String,
    /// What joins it to the one before it.
    pub joint: Joint,
    /// Programs that only start it, outermost first.
    pub wrappers: Vec<String>,
    /// The effective program and arguments; expansions are shown as written.
    pub argv: Vec<String>,
    /// The effective program.
    pub program: Option<Program>,
    /// All programs that this segment starts, wrappers first.
    pub starts: Vec<Program>,
    /// The rule that covers it, or everything that speaks against it.
    pub standing: Result<Cover, Vec<Objection>>,
    /// What "always" would store for it.
    pub(crate) lasting: Lasting,
}

/// Whether a segment can be allowed for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lasting {
    /// It needs nothing stored.
    Unneeded,
    /// This would be stored.
    Grant(Grant),
    /// It cannot.
    Never(NeverLasts),
}

/// What "always" stores: this program, with these arguments, in this folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// The program without links.
    pub program: PathBuf,
    /// Program and arguments as given.
    pub argv: Vec<String>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The rule for the arguments, as it is stored.
    pub rule: String,
}

/// Why "always" is not to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NeverLasts {
    /// A shell, an interpreter or something that starts other programs.
    #[error("it starts other programs or code, which may differ next time")]
    Interprets,
    /// It is not read with certainty.
    #[error("what it does is not certain from its text")]
    Uncertain,
    /// A variable, a glob or another expansion.
    #[error("its arguments contain variables")]
    Dynamic,
    /// There is no such program.
    #[error("the program does not exist")]
    NotFound,
    /// A file that commands here, a skill or others can change.
    #[error("commands that run here could change the program")]
    Changeable,
    /// The rules ask every time.
    #[error("every command needs approval here")]
    AlwaysAsk,
}

/// What the judge found.
///
/// It cannot be copied or changed: whoever has one has what the judge said, and can use it once.
#[derive(Debug)]
pub struct Judgment {
    verdict: Verdict,
    request: Request,
    segments: Vec<Judged>,
    objections: Vec<Objection>,
    pub(crate) template: Template,
    pub(crate) pins: Vec<Pin>,
    posture: Posture,
    wants: Lease,
    lacks: Lease,
    held: Lease,
    creates: Vec<PathBuf>,
    skill: Option<String>,
}

impl Rules {
    /// Judges `request`. The text that was judged is the text that a [`Permit`] runs.
    #[must_use]
    pub fn judge(&self, request: Request, lookup: &dyn Lookup) -> Judgment {
        let script = Script::parse(&request.binding.command);
        let mut bench = Bench::new(self, lookup, &request);
        let (mut segments, template) = bench.script(&script, 0);
        let pins = bench.into_pins();
        let mut objections: Vec<Objection> = script.doubts.iter().copied().map(Objection::Doubt).collect();
        objections.extend(disguise::disguises(&script.text).into_iter().map(Objection::Disguised));
        if request.shell.dialect == Dialect::Posix && speaks_bash(&script) {
            objections.push(Objection::Dialect);
        }
        let steering = request.variables.iter().filter(|(name, value)| !is_harmless_assignment(name, Some(value)));
        objections.extend(steering.map(|(name, _)| Objection::Assignment(name.clone())));
        if request.place == ProgramPlace::Container {
            objections.push(Objection::Elsewhere);
        }
        match (self.posture.security, self.posture.ask) {
            (Security::Deny, _) => objections.push(Objection::Off),
            (_, Ask::Always) => objections.push(Objection::AlwaysAsk),
            (_, Ask::Off | Ask::OnMiss) => {}
        }
        let wants = wants(&segments, &objections, (&request.binding, &self.ground, lookup));
        let mut lacks = lacks(&wants.lease, &self.ground, lookup);
        // What a command leaves running stays in the sandbox and ends with it; only a skill that says so needs more.
        lacks.keeps_running &= self.ground.declared.keeps_running;
        match (self.posture.security, self.posture.ask) {
            (Security::Contained, _) => {
                let missing = missing_program(&segments).filter(|_| !lacks.is_empty());
                // Where no answer helps, there is nothing to ask for.
                let asked = if wants.refused.is_empty() { lacks.clone() } else { Lease::default() };
                contain(&mut segments, &mut objections, &asked);
                objections.extend(missing.map(Objection::NotFound));
                objections.extend(wants.refused.into_iter().map(Objection::Unleasable));
            }
            // A rule for a program is no rule for a key. Without a way to ask, the command runs without the key.
            (Security::Allowlist, Ask::OnMiss | Ask::Always) => objections.extend(key_objections(&lacks)),
            (Security::Allowlist, Ask::Off) | (Security::Deny | Security::Full, _) => {}
        }
        let verdict = self.verdict(&segments, &objections);
        let (creates, wants) = (wants.creates, wants.lease);
        let (held, skill, posture) = (self.ground.held.clone(), self.ground.skill.clone(), self.posture);
        Judgment { verdict, request, segments, objections, template, pins, posture, wants, lacks, held, creates, skill }
    }

    fn verdict(&self, segments: &[Judged], objections: &[Objection]) -> Verdict {
        if objections.iter().any(Objection::is_final) {
            return Verdict::Deny;
        }
        // A disguise is put to a person in every mode; so is everything where the rules say so.
        let must_ask = objections.iter().any(|one| matches!(one, Objection::Disguised(_) | Objection::AlwaysAsk));
        let is_inside = self.posture.security == Security::Contained && objections.is_empty();
        let is_covered = self.posture.security == Security::Full || is_inside || is_satisfied(segments, objections);
        match (is_covered, self.posture.ask) {
            (true, _) if !must_ask => Verdict::Allow,
            (true, _) | (false, Ask::OnMiss | Ask::Always) => Verdict::Ask,
            (false, Ask::Off) => Verdict::Deny,
        }
    }
}

/// What is left to object to in a sandbox that the kernel enforces: that a person is asked every time, that the command
/// cannot be started at all, and what it wants beyond the sandbox.
fn contain(segments: &mut [Judged], objections: &mut Vec<Objection>, lacks: &Lease) {
    for segment in segments {
        segment.standing = Ok(Cover::Sandbox);
        segment.lasting = Lasting::Unneeded;
    }
    objections.retain(|one| match one {
        Objection::AlwaysAsk | Objection::Elsewhere => true,
        Objection::TooLarge(_) => false,
        other => other.is_final(),
    });
    objections.extend(lacks.phrases().into_iter().map(Objection::Leaves));
}

/// The program that is not there, if it is all there is to the command. Whoever is asked what it may use should know.
fn missing_program(segments: &[Judged]) -> Option<String> {
    let [only] = segments else { return None };
    only.standing.as_ref().err()?.iter().find_map(|one| match one {
        Objection::NotFound(name) => Some(name.clone()),
        _ => None,
    })
}

/// One objection for each key that no lease covers.
fn key_objections(lacks: &Lease) -> Vec<Objection> {
    let keys = Lease { keys: lacks.keys.clone(), ..Lease::default() };
    keys.phrases().into_iter().map(Objection::Leaves).collect()
}

/// Whether rules cover every segment and nothing speaks against the whole but the wish to be asked.
fn is_satisfied(segments: &[Judged], objections: &[Objection]) -> bool {
    !segments.is_empty()
        && segments.iter().all(|segment| segment.standing.is_ok())
        && objections.iter().all(|one| matches!(one, Objection::AlwaysAsk | Objection::Disguised(_)))
}

/// Whether `script` has something that only bash reads the way we do.
fn speaks_bash(script: &Script) -> bool {
    let written = |span: Span| script.text.get(span.range()).unwrap_or_default();
    let is_odd_word = |word: &Word| match &word.value {
        Value::Literal(_) => written(word.span).contains("$'"),
        Value::Dynamic { expansions, .. } => {
            let odd = [Expansion::Brace, Expansion::Parameter, Expansion::Tilde];
            expansions.iter().any(|one| odd.contains(one)) || written(word.span).contains("$'")
        }
    };
    script.segments.iter().any(|segment| {
        segment.joint == Joint::PipeBoth
            || segment.words.iter().any(is_odd_word)
            || segment.assignments.iter().any(|one| is_odd_word(&one.value))
            || segment.redirects.iter().any(|redirect| {
                let is_both = written(redirect.span).contains('&') && redirect.kind == RedirectKind::Write;
                is_both || redirect.descriptor.is_some_and(|number| number > 9) || is_odd_word(&redirect.target)
            })
    })
}

impl Judgment {
    /// The answer.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// How strict the rules were.
    #[must_use]
    pub fn posture(&self) -> Posture {
        self.posture
    }

    /// What was asked for.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Each simple command.
    #[must_use]
    pub fn segments(&self) -> &[Judged] {
        &self.segments
    }

    /// What speaks against the command as a whole.
    #[must_use]
    pub fn objections(&self) -> &[Objection] {
        &self.objections
    }

    /// The files that must not change before it runs.
    #[must_use]
    pub fn pins(&self) -> &[Pin] {
        &self.pins
    }

    /// The permit of an allowed command; the judgment back otherwise.
    pub fn permit(self) -> Result<Permit, Box<Self>> {
        if self.verdict == Verdict::Allow { Ok(self.into_permit(Basis::Rules)) } else { Err(Box::new(self)) }
    }

    /// The question to a person where there is one to be asked; the judgment back otherwise.
    pub fn question(self) -> Result<Question, Box<Self>> {
        if self.verdict == Verdict::Ask { Ok(Question::new(self)) } else { Err(Box::new(self)) }
    }

    /// What "always" would store: one grant for each program that no rule covers yet.
    pub fn grants(&self) -> Result<Vec<Grant>, NeverLasts> {
        if self.objections.contains(&Objection::AlwaysAsk) {
            return Err(NeverLasts::AlwaysAsk);
        }
        if self.posture.security == Security::Contained {
            return Ok(Vec::new());
        }
        // What it wants beyond the sandbox lasts as a lease, beside the rules for its programs.
        if self.objections.iter().any(|one| !matches!(one, Objection::Leaves(_))) {
            return Err(NeverLasts::Uncertain);
        }
        let mut grants = Vec::new();
        for segment in &self.segments {
            match &segment.lasting {
                Lasting::Unneeded => {}
                Lasting::Grant(grant) if grants.contains(grant) => {}
                Lasting::Grant(grant) => grants.push(grant.clone()),
                Lasting::Never(why) => return Err(*why),
            }
        }
        Ok(grants)
    }

    /// What it wants beyond the sandbox, as far as its text tells.
    #[must_use]
    pub fn wants(&self) -> &Lease {
        &self.wants
    }

    /// The part of [`wants`](Self::wants) that no lease covers: what a person's yes adds.
    #[must_use]
    pub fn lacks(&self) -> &Lease {
        &self.lacks
    }

    /// The same in words, as a person is asked about it: `reach wttr.in, for skill weather`.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        let skill = self.skill.as_ref().map(|skill| format!(", for skill {skill}")).unwrap_or_default();
        self.lacks.phrases().into_iter().map(|phrase| phrase + &skill).collect()
    }

    /// The entries of the allowlist that this command used: their ids, and the path of the program each covered.
    pub fn uses(&self) -> impl Iterator<Item = (&str, String)> {
        self.segments.iter().filter_map(|segment| match (&segment.standing, &segment.program) {
            (Ok(Cover::Allowlist { id, .. }), Some(program)) => {
                Some((id.as_str(), program.real.to_string_lossy().into_owned()))
            }
            _ => None,
        })
    }

    /// Everything that speaks against it, for the whole and for each segment.
    pub fn all_objections(&self) -> impl Iterator<Item = &Objection> {
        self.objections.iter().chain(self.segments.iter().filter_map(|one| one.standing.as_ref().err()).flatten())
    }

    /// What would change the verdict, without repetition.
    #[must_use]
    pub fn remedies(&self) -> Vec<String> {
        let mut remedies = Vec::new();
        if self.verdict == Verdict::Allow {
            return remedies;
        }
        for remedy in self.all_objections().filter_map(Objection::remedy) {
            if !remedies.contains(&remedy) {
                remedies.push(remedy);
            }
        }
        remedies
    }

    pub(crate) fn runs_unanswered(&self) -> bool {
        let is_disguised = self.objections.iter().any(|one| matches!(one, Objection::Disguised(_)));
        self.posture.unanswered(is_satisfied(&self.segments, &self.objections), is_disguised)
    }

    pub(crate) fn into_permit(self, basis: Basis) -> Permit {
        let lease = if basis == Basis::Person { self.held.and(&self.lacks) } else { self.held };
        let creates = self.creates.into_iter().filter(|path| lease.writes.contains(path)).collect();
        Permit::new(self.request.binding, self.request.shell, self.template, self.pins, basis, (lease, creates))
    }
}
