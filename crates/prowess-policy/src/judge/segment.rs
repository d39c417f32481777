//! One segment: which programs does it start, and does a rule cover it?

use std::path::{Path, PathBuf};

use super::builtin::{Builtin, builtin, stands_in_for_program};
use super::pins::{Ground, Replacements, is_passage, template};
use super::{Cover, Grant, Judged, Lasting, NeverLasts, Objection, Request, Rules};
use crate::approvals::Entry;
use crate::lookup::{Keeper, Lookup, Program};
use crate::permit::{Dialect, Piece, Pin, Template};
use crate::posture::Security;
use crate::reach::{self, Called, Farther, Reach};
use crate::safe_bin::SafeBinObjection;
use crate::script::{Assignment, Expansion, Joint, Redirect, RedirectKind, Script, Segment, Span, Value, Word};
use crate::wrapper::{self, Inner, Tail, WrapperKind, is_harmless_assignment};

/// The judge at work on one request.
pub(super) struct Bench<'a> {
    rules: &'a Rules,
    pub(super) lookup: &'a dyn Lookup,
    cwd: &'a Path,
    dialect: Dialect,
    pub(super) pins: Vec<Pin>,
    /// Whether a `cd` came before.
    pub(super) moved: bool,
    /// Where it led, when that is certain.
    pub(super) went: Option<PathBuf>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(rules: &'a Rules, lookup: &'a dyn Lookup, request: &'a Request) -> Self {
        let (cwd, dialect) = (request.binding.cwd.path.as_path(), request.shell.dialect);
        Self { rules, lookup, cwd, dialect, pins: Vec::new(), moved: false, went: None }
    }

    pub(super) fn into_pins(self) -> Vec<Pin> {
        self.pins
    }

    /// Judges every segment of `script`, which stands within `around` wrappers, and says what its text becomes.
    pub(super) fn script(&mut self, script: &Script, around: usize) -> (Vec<Judged>, Template) {
        let mut judged = Vec::new();
        let mut replacements = Replacements::new();
        let base = if self.moved { self.went.take() } else { Some(self.cwd.to_owned()) };
        let target = base.and_then(|base| departure(&script.segments, &base));
        for (index, segment) in script.segments.iter().enumerate() {
            self.went = target.clone().filter(|_| follows(&script.segments[..=index]));
            judged.extend(self.segment(script, segment, around, &mut replacements));
        }
        (judged, template(&script.text, replacements))
    }

    fn segment(&mut self, script: &Script, segment: &Segment, around: usize, out: &mut Replacements) -> Vec<Judged> {
        let mut case = Case {
            judged: Judged {
                span: (around == 0).then_some(segment.span),
                text: script.text[segment.span.range()].to_owned(),
                joint: segment.joint,
                wrappers: Vec::new(),
                argv: segment.words.iter().map(|word| shown(script, word)).collect(),
                program: None,
                starts: Vec::new(),
                standing: Err(Vec::new()),
                lasting: Lasting::Never(NeverLasts::Uncertain),
            },
            objections: Vec::new(),
            in_shell: true,
        };
        let is_bare = segment.words.is_empty();
        case.objections.extend(assigned(&segment.assignments, is_bare));
        // Where there is no program to be silent, a redirection is all there is to ask about.
        let redirects = segment.redirects.iter().filter(|one| is_bare || !is_harmless(one));
        case.objections.extend(redirects.filter_map(|one| redirected(one, shown(script, &one.target))));
        let values = segment.assignments.iter().map(|one| &one.value);
        let targets = segment.redirects.iter().map(|one| &one.target);
        let evaluated = segment.words.iter().chain(values).chain(targets).filter(|word| is_evaluated(word));
        case.objections.extend(evaluated.map(|word| Objection::Evaluates(shown(script, word))));
        self.watch(segment.redirects.iter().map(|one| &one.target));
        if is_bare {
            return vec![case.close(None)];
        }
        let mut unwrapped = wrapper::unwrap(&segment.words, around);
        let ground = Ground { text: &script.text, nested: segment.nested };
        let timed = self.times(script, segment, around);
        for wrapper in &unwrapped.wrappers {
            if timed != Some(wrapper.word.span) {
                self.wrapper(wrapper, ground, &mut case, out);
            }
        }
        for (name, value) in unwrapped.assignments.drain(..) {
            if !is_harmless_assignment(&name, value.as_deref()) {
                case.objections.push(Objection::Assignment(name));
            }
        }
        match unwrapped.inner {
            Inner::Opaque(why) => {
                self.watch(&segment.words);
                case.objections.push(Objection::Opaque(why));
                case.judged.lasting = Lasting::Never(NeverLasts::Interprets);
                vec![case.close(None)]
            }
            Inner::Query => vec![case.close(Some(Cover::Builtin))],
            Inner::Script { word, text } => self.inner_script(word, text, around, ground, case, out),
            Inner::Command(words) => {
                case.judged.argv = words.iter().map(|word| shown(script, word)).collect();
                let cover = self.command(&words, unwrapped.tail, ground, &mut case, out);
                vec![case.close(cover)]
            }
        }
    }

    /// Where the segment has `time` as a word of the language, not as the name of a program: bash reads it so in the
    /// first place of a pipeline, in so many letters.
    fn times(&self, script: &Script, segment: &Segment, around: usize) -> Option<Span> {
        let first = segment.words.first()?.span;
        let leads = !matches!(segment.joint, Joint::Pipe | Joint::PipeBoth) && segment.assignments.is_empty();
        let is_keyword =
            leads && around == 0 && self.dialect == Dialect::Bash && script.text.get(first.range()) == Some("time");
        is_keyword.then_some(first)
    }

    /// A program that only starts another: it must be the system's own, or be listed itself.
    fn wrapper(&mut self, wrapper: &wrapper::Wrapper<'_>, ground: Ground<'_>, case: &mut Case, out: &mut Replacements) {
        let Value::Literal(token) = &wrapper.word.value else {
            case.objections.push(Objection::DynamicProgram);
            return;
        };
        case.judged.wrappers.push(token.clone());
        if wrapper.kind == WrapperKind::Shell {
            // `command` asks the shell for the next name; `exec` looks for a program.
            case.in_shell &= token == "command";
            return;
        }
        case.in_shell = false;
        let Some(program) = self.find(token, case) else { return };
        // What it starts are arguments too, so an entry for certain arguments says nothing about it.
        if !program.is_trusted() && self.listed(&program, token, &[], Tail::Open).is_none() {
            case.objections.push(Objection::ForeignWrapper(program.real.clone()));
        }
        self.pin(wrapper.word, &program, ground, out);
        self.pin_interpreters(&program);
        case.judged.starts.push(program);
    }

    fn inner_script(
        &mut self,
        word: &Word,
        text: &str,
        around: usize,
        ground: Ground<'_>,
        mut case: Case,
        out: &mut Replacements,
    ) -> Vec<Judged> {
        // Only the plain form is seen through: a shell called by its name, and nothing else around it.
        if !matches!(case.judged.wrappers.as_slice(), [shell] if !shell.contains('/')) || around > 0 {
            case.objections.push(Objection::WrappedShell);
        }
        let inner = Script::parse(text);
        case.objections.extend(
            inner
                .doubts
                .iter()
                .map(|doubt| Objection::Doubt(crate::script::Doubt { span: word.span, kind: doubt.kind })),
        );
        if !case.objections.is_empty() {
            return vec![case.close(None)];
        }
        // What moves inside a shell of its own does not move us.
        let before = (self.moved, self.went.clone());
        let pinned = self.pins.len();
        let (mut segments, template) = self.script(&inner, around + case.judged.wrappers.len());
        (self.moved, self.went) = before;
        if ground.holds(word) {
            out.push((word.span, Piece::Quoted(template)));
        } else {
            // The text stays as it is, so none of its words gives way to a path.
            self.pins[pinned..].iter_mut().for_each(|pin| pin.span = None);
        }
        for segment in &mut segments {
            segment.wrappers.splice(0..0, case.judged.wrappers.iter().cloned());
        }
        if let Some(first) = segments.first_mut() {
            first.starts.splice(0..0, case.judged.starts);
            first.joint = case.judged.joint;
        }
        segments
    }

    fn command(
        &mut self,
        words: &[Word],
        tail: Tail,
        ground: Ground<'_>,
        case: &mut Case,
        out: &mut Replacements,
    ) -> Option<Cover> {
        let (first, args) = words.split_first()?;
        let Some(token) = self.token(first, &case.judged.argv[0]) else {
            case.objections.push(Objection::DynamicProgram);
            case.judged.lasting = Lasting::Never(NeverLasts::Dynamic);
            return None;
        };
        let token = token.as_str();
        if case.in_shell {
            match builtin(token, words) {
                Some(Builtin::Harmless) => return Some(Cover::Builtin),
                Some(Builtin::Moves) => {
                    self.moved = true;
                    return Some(Cover::Builtin);
                }
                Some(Builtin::Other) => {
                    case.objections.push(Objection::Builtin(token.to_owned()));
                    case.judged.lasting = Lasting::Never(NeverLasts::Interprets);
                    return None;
                }
                None => {}
            }
        }
        let program = self.find(token, case)?;
        case.object_to_size(&program);
        // What the shell does itself stays as it is written: `kill %1` means a job of the shell.
        if !(case.in_shell && stands_in_for_program(token)) {
            self.pin(first, &program, ground, out);
            self.pin_interpreters(&program);
        }
        case.judged.starts.push(program.clone());
        case.judged.program = Some(program.clone());
        let called = Called { token, real: &program.real, text: ground.text };
        let mut reach = reach::reach(called, args, tail);
        if let Reach::Script(index) = reach {
            match args.get(index).and_then(|word| self.file(word)) {
                None => reach = Reach::Farther(Farther::without_script()),
                Some(file) if is_passage(&file) => reach = Reach::Farther(Farther::from_input()),
                Some(_) => {}
            }
        }
        let script = self.script_operand(&reach, args);
        self.watch(args.iter().filter(|word| Some(word.span) != script.map(|script| script.span)));
        if let Some(script) = script {
            self.pin_script(script, ground, case, out);
        }
        let cover = self.cover(token, &program, args, tail, &reach, case);
        if cover.is_none() {
            // What runs code when it is given nothing at all is a shell or an interpreter, whatever it is given now.
            let is_interpreter = reach::reach(called, &[], Tail::Closed) != Reach::Plain;
            case.judged.lasting = if is_interpreter || reach != Reach::Plain {
                Lasting::Never(NeverLasts::Interprets)
            } else if program.keeper == Keeper::Anyone {
                Lasting::Never(NeverLasts::Changeable)
            } else if self.moved {
                Lasting::Never(NeverLasts::Uncertain)
            } else {
                lasting(&program, words, tail, self.cwd)
            };
        }
        cover
    }

    /// The rule that covers the command, or an objection.
    fn cover(
        &self,
        token: &str,
        program: &Program,
        args: &[Word],
        tail: Tail,
        reach: &Reach,
        case: &mut Case,
    ) -> Option<Cover> {
        let entry = self.listed(program, token, args, tail);
        // Where the operator named this very interpreter, its scripts are covered; code in its arguments is not.
        if let (Some((cover, _)), Reach::Plain) | (Some((cover, Breadth::Exact)), Reach::Script(_)) = (&entry, reach) {
            return Some(cover.clone());
        }
        let safe_bin = self.rules.safe_bins.check(token, program, args, tail);
        if safe_bin.is_ok() {
            return Some(Cover::SafeBin);
        }
        if *reach == Reach::Plain && self.is_skill_bin(token, program) {
            return Some(Cover::SkillBin);
        }
        case.objections.push(match (entry, reach) {
            (Some(_), Reach::Farther(farther)) => Objection::ReachesFarther(*farther),
            (Some(_), Reach::Script(_)) => Objection::Interpreter(program.real.clone()),
            (_, _) => Objection::NotListed {
                real: program.real.clone(),
                safe_bin: safe_bin.err().filter(SafeBinObjection::is_about_arguments),
            },
        });
        None
    }

    fn listed(&self, program: &Program, token: &str, args: &[Word], tail: Tail) -> Option<(Cover, Breadth)> {
        let covering = self
            .rules
            .allowlist
            .iter()
            // Behind `cd` it runs in another folder than the one that the entry is for.
            .filter(|entry| !self.moved || !entry.is_bound_to_a_folder())
            // Where more arguments follow that nobody has seen, a rule for certain arguments cannot hold.
            .filter(|entry| tail == Tail::Closed || !entry.is_bound_to_arguments())
            .filter(|entry| entry.covers(program, token, args, self.cwd, &self.rules.home));
        covering
            .map(|entry| {
                let breadth = if entry.pattern.contains(['*', '?']) { Breadth::Wildcard } else { Breadth::Exact };
                (Cover::Allowlist { pattern: entry.pattern.clone(), id: entry.id.clone() }, breadth)
            })
            .max_by_key(|(_, breadth)| *breadth)
    }

    fn is_skill_bin(&self, token: &str, program: &Program) -> bool {
        self.rules.posture.auto_allow_skills
            && self.rules.posture.security == Security::Allowlist
            && !token.contains(['/', '\\'])
            && self.rules.skill_bins.iter().any(|bin| bin.name == token && bin.real == program.real)
    }

    /// The program's name where it is certain: a literal, or a plain path below the home that `~` stands for.
    fn token(&self, word: &Word, written: &str) -> Option<String> {
        match &word.value {
            Value::Literal(token) => Some(token.clone()),
            Value::Dynamic { expansions, .. } if expansions == &[Expansion::Tilde] => {
                let rest = written.strip_prefix("~/")?;
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+/".contains(&byte);
                rest.bytes().all(is_plain).then(|| self.rules.home.join(rest).to_string_lossy().into_owned())
            }
            Value::Dynamic { .. } => None,
        }
    }

    fn find(&self, token: &str, case: &mut Case) -> Option<Program> {
        if self.moved && token.contains('/') && !token.starts_with('/') {
            case.objections.push(Objection::AfterCd(token.to_owned()));
            // Whoever approves it all the same approves the file that is there now.
            let path = self.went.as_ref()?.join(token);
            return path.to_str().and_then(|path| self.lookup.program(path));
        }
        let found = self.lookup.program(token);
        if found.is_none() {
            case.objections.push(Objection::NotFound(token.to_owned()));
            case.judged.lasting = Lasting::Never(NeverLasts::NotFound);
        }
        found
    }
}

/// Where a script goes with its first command, a `cd` to a folder that is written out, if it goes nowhere else after.
fn departure(segments: &[Segment], base: &Path) -> Option<PathBuf> {
    let is_cd = |segment: &Segment| segment.words.first().and_then(Word::literal) == Some("cd");
    let (first, rest) = segments.split_first()?;
    let [_, folder] = first.words.as_slice() else { return None };
    let folder = folder.literal().filter(|folder| !folder.is_empty() && !folder.starts_with('-'))?;
    let is_alone = is_cd(first) && !first.nested && !rest.iter().any(is_cd);
    is_alone.then(|| base.join(folder))
}

/// Whether the last of `segments` runs only where the first one led.
fn follows(segments: &[Segment]) -> bool {
    let goes_on = |one: &Segment| !one.nested && matches!(one.joint, Joint::And | Joint::Pipe | Joint::PipeBoth);
    segments.get(1).is_some_and(|second| second.joint == Joint::And) && segments[1..].iter().all(goes_on)
}

/// How much an entry names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Breadth {
    Wildcard,
    Exact,
}

/// A segment while it is being judged.
pub(super) struct Case {
    judged: Judged,
    objections: Vec<Objection>,
    /// Whether the next name is still the shell's to read: behind `nice` or `exec` it is that of a program.
    in_shell: bool,
}

impl Case {
    /// What others can change and nobody can compare must not be approved.
    pub(super) fn object_to_size(&mut self, file: &Program) {
        if file.keeper == Keeper::Anyone && file.identity.digest.is_none() {
            self.objections.push(Objection::TooLarge(file.real.clone()));
        }
    }

    fn close(mut self, cover: Option<Cover>) -> Judged {
        self.judged.standing = match cover {
            Some(cover) if self.objections.is_empty() => {
                self.judged.lasting = Lasting::Unneeded;
                Ok(cover)
            }
            Some(_) => {
                self.judged.lasting = Lasting::Never(NeverLasts::Uncertain);
                Err(self.objections)
            }
            None => {
                let is_only_unlisted = self.objections.iter().all(|one| matches!(one, Objection::NotListed { .. }));
                if !is_only_unlisted && matches!(self.judged.lasting, Lasting::Grant(_)) {
                    self.judged.lasting = Lasting::Never(NeverLasts::Uncertain);
                }
                Err(self.objections)
            }
        };
        self.judged
    }
}

fn assigned(assignments: &[Assignment], is_bare: bool) -> impl Iterator<Item = Objection> + '_ {
    assignments.iter().filter_map(move |one| {
        if is_bare {
            Some(Objection::BareAssignment(one.name.clone()))
        } else {
            (!is_harmless_assignment(&one.name, one.value.literal())).then(|| Objection::Assignment(one.name.clone()))
        }
    })
}

/// Whether the shell looks for code in what a variable holds: `$((x))`, `${!x}`, `${x@P}` and their kind do.
fn is_evaluated(word: &Word) -> bool {
    let evaluates = |one: &Expansion| matches!(one, Expansion::Arithmetic | Expansion::Parameter);
    matches!(&word.value, Value::Dynamic { expansions, .. } if expansions.iter().any(evaluates))
}

fn redirected(redirect: &Redirect, target: String) -> Option<Objection> {
    match redirect.kind {
        RedirectKind::Read => Some(Objection::ReadsFrom(target)),
        RedirectKind::Write | RedirectKind::Duplicate => Some(Objection::WritesTo(target)),
        // The text itself has a doubt for these.
        RedirectKind::HereDocument | RedirectKind::HereString => None,
    }
}

/// Silence, and the two outputs joined: nothing is read or written that was not before.
fn is_harmless(redirect: &Redirect) -> bool {
    let Value::Literal(target) = &redirect.target.value else { return false };
    let is_standard = redirect.descriptor.is_none_or(|number| number <= 2);
    is_standard
        && match redirect.kind {
            RedirectKind::Duplicate => matches!(target.as_str(), "0" | "1" | "2" | "-"),
            RedirectKind::Read | RedirectKind::Write => target == "/dev/null",
            RedirectKind::HereDocument | RedirectKind::HereString => false,
        }
}

/// What "always" would store for a command that no rule covers.
fn lasting(program: &Program, words: &[Word], tail: Tail, cwd: &Path) -> Lasting {
    let argv: Option<Vec<String>> = words.iter().map(|word| word.literal().map(str::to_owned)).collect();
    let (Some(argv), Tail::Closed) = (argv, tail) else { return Lasting::Never(NeverLasts::Dynamic) };
    let entry = Entry::exact(String::new(), program, &words[1..], cwd);
    match entry.and_then(|entry| entry.arg_pattern) {
        Some(rule) => Lasting::Grant(Grant { program: program.real.clone(), argv, cwd: cwd.to_owned(), rule }),
        None => Lasting::Never(NeverLasts::Uncertain),
    }
}

/// A word for people: its value where that is certain, else as written.
fn shown(script: &Script, word: &Word) -> String {
    match &word.value {
        Value::Literal(text) => text.clone(),
        Value::Dynamic { .. } => script.text[word.span.range()].to_owned(),
    }
}
