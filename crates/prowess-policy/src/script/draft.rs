//! The script while it is read: segments grow word by word, in the order of the text.
//!
//! A grammar says where things are; what they are is decided from their text. So a word is read by the rules of
//! [`super::word`], and must end where the grammar ends it.

use super::doubts::Doubts;
use super::word::{self, Place};
use super::{Assignment, DoubtKind, Joint, Redirect, RedirectKind, Segment, Span, Value, Word};

/// Words that open or close something where a program is expected.
const RESERVED: [(&str, DoubtKind); 21] = [
    ("!", DoubtKind::Unusual),
    ("[[", DoubtKind::Compound),
    ("]]", DoubtKind::Compound),
    ("case", DoubtKind::Compound),
    ("coproc", DoubtKind::Coprocess),
    ("do", DoubtKind::Compound),
    ("done", DoubtKind::Compound),
    ("elif", DoubtKind::Compound),
    ("else", DoubtKind::Compound),
    ("esac", DoubtKind::Compound),
    ("fi", DoubtKind::Compound),
    ("for", DoubtKind::Compound),
    ("function", DoubtKind::Function),
    ("if", DoubtKind::Compound),
    ("in", DoubtKind::Compound),
    ("select", DoubtKind::Compound),
    ("then", DoubtKind::Compound),
    ("until", DoubtKind::Compound),
    ("while", DoubtKind::Compound),
    ("{", DoubtKind::Group),
    ("}", DoubtKind::Group),
];

/// Programs whose arguments bash reads as assignments.
const ASSIGNING: [&str; 7] = ["declare", "eval", "export", "let", "local", "readonly", "typeset"];

/// What an unquoted `word` says in the place of a program, if it is not one.
pub(super) fn reserved(word: &str) -> Option<DoubtKind> {
    RESERVED.iter().find(|(reserved, _)| *reserved == word).map(|(_, kind)| *kind)
}

/// A piece of text outside everything nested, for the question whether all of it was seen.
#[derive(Debug, Clone, Copy)]
struct Token {
    span: Span,
    role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It begins a pipeline or a command in it.
    First,
    /// It continues a command.
    Inner,
    /// It ends one, and the next one may begin on another line.
    Joint,
}

/// A redirection whose target is still to come.
#[derive(Debug, Clone, Copy)]
struct Operator {
    descriptor: Option<Span>,
    span: Span,
}

/// Where the next word belongs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    current: Option<usize>,
    joint: Joint,
}

/// The script so far.
pub(super) struct Draft<'t> {
    text: &'t str,
    segments: Vec<Segment>,
    doubts: &'t mut Doubts,
    tokens: Vec<Token>,
    position: Position,
    descriptor: Option<Span>,
    operator: Option<Operator>,
    /// The last word, which the next piece of text may continue.
    open: Option<Span>,
    /// What the next word or redirection is.
    role: Role,
    /// Whether a `!` waits for its command.
    is_negated: bool,
    nesting: usize,
}

impl<'t> Draft<'t> {
    /// Nothing of `text` is read yet.
    pub(super) fn new(text: &'t str, doubts: &'t mut Doubts) -> Self {
        let position = Position { current: None, joint: Joint::First };
        Self {
            text,
            segments: Vec::new(),
            doubts,
            tokens: Vec::new(),
            position,
            descriptor: None,
            operator: None,
            open: None,
            role: Role::First,
            is_negated: false,
            nesting: 0,
        }
    }

    /// The segments, after a last look at what lies between their words.
    pub(super) fn finish(mut self) -> Vec<Segment> {
        self.close_word();
        if self.doubts.is_empty() && !self.all_is_seen() {
            self.disagree();
        }
        for segment in &mut self.segments {
            segment.span = extent(segment);
        }
        self.segments.retain(|segment| segment.span.end > 0);
        self.segments
    }

    /// The text of `span`.
    pub(super) fn slice(&self, span: Span) -> &'t str {
        &self.text[span.range()]
    }

    /// Whether we are inside something that is doubtful as a whole.
    pub(super) fn is_nested(&self) -> bool {
        self.nesting > 0
    }

    /// Notes a doubt.
    pub(super) fn doubt(&mut self, span: Span, kind: DoubtKind) {
        self.doubts.push(span, kind);
    }

    /// Goes into a script within the script, and returns where we were.
    pub(super) fn enter(&mut self) -> Position {
        self.close_word();
        self.nesting += 1;
        std::mem::replace(&mut self.position, Position { current: None, joint: Joint::First })
    }

    /// Comes back.
    pub(super) fn leave(&mut self, position: Position) {
        self.close_word();
        self.nesting -= 1;
        self.position = position;
    }

    /// A new simple command begins.
    pub(super) fn begin(&mut self) {
        self.close_word();
        self.position.current = Some(self.segments.len());
        self.role = if std::mem::take(&mut self.is_negated) { Role::Inner } else { Role::First };
        let joint = std::mem::replace(&mut self.position.joint, Joint::Then);
        self.segments.push(Segment {
            span: Span { start: 0, end: 0 },
            joint,
            assignments: Vec::new(),
            words: Vec::new(),
            redirects: Vec::new(),
            nested: self.is_nested(),
        });
    }

    /// An operator ends the command.
    pub(super) fn join(&mut self, span: Span, joint: Joint) {
        self.end();
        self.position.joint = joint;
        self.token(span, Role::Joint);
    }

    /// The command ends.
    pub(super) fn end(&mut self) {
        self.close_word();
        self.position.current = None;
    }

    /// A `!` in front of a command.
    pub(super) fn negate(&mut self, span: Span) {
        self.close_word();
        self.token(span, Role::First);
        self.is_negated = true;
    }

    /// The number in front of a redirection.
    pub(super) fn descriptor(&mut self, span: Span) {
        self.close_word();
        self.descriptor = Some(span);
    }

    /// The sign of a redirection. `<&-` and `>&-` have their target in them.
    pub(super) fn operator(&mut self, span: Span) {
        self.close_word();
        let descriptor = self.descriptor.take();
        let has_target = self.slice(span).ends_with("&-");
        let sign = Span { start: span.start, end: span.end - usize::from(has_target) };
        if descriptor.is_some_and(|descriptor| descriptor.end != span.start) {
            self.disagree();
        }
        if descriptor.is_none() && self.follows_name_in_braces(span) {
            self.doubt(span, DoubtKind::Unusual);
        }
        if self.position.current.is_none() {
            self.begin();
        }
        let start = descriptor.map_or(sign.start, |descriptor| descriptor.start);
        self.part(Span { start, end: sign.end });
        self.operator = Some(Operator { descriptor, span: sign });
        if has_target {
            self.word(Span { start: sign.end, end: span.end });
        }
    }

    /// `{NAME}>file`: the shell chooses a number and sets the variable.
    fn follows_name_in_braces(&self, operator: Span) -> bool {
        self.tokens
            .last()
            .is_some_and(|before| before.span.end == operator.start && self.slice(before.span).starts_with('{'))
    }

    /// A word, or the next piece of the last one: the grammar takes `$a/$b-c` apart, but words that touch are one word.
    pub(super) fn word(&mut self, span: Span) {
        match &mut self.open {
            Some(open) if open.end == span.start => open.end = span.end,
            _ => {
                self.close_word();
                self.open = Some(span);
            }
        }
    }

    /// The last word is complete: the target of a redirection, an assignment, the program, or an argument.
    fn close_word(&mut self) {
        let Some(span) = self.open.take() else { return };
        if self.position.current.is_none() {
            self.begin();
        }
        self.part(span);
        let is_number = self.slice(span).bytes().all(|byte| byte.is_ascii_digit());
        if is_number && self.text[span.end..].starts_with(['<', '>']) {
            // It belongs to the redirection behind it.
            self.disagree();
        }
        if let Some(operator) = self.operator.take() {
            return self.target(operator, span);
        }
        let text = self.slice(span);
        if let Some(form) = word::assignment(text).filter(|_| self.is_first()) {
            return self.assignment(span, &form);
        }
        if word::opens_subscript(text) && (self.is_program() || self.is_assigning()) {
            self.disagree();
        }
        if let Some(kind) = reserved(text).filter(|_| self.is_program()) {
            self.doubt(span, kind);
        }
        let word = self.read(span, Place::Argument);
        if let Some(segment) = self.segment() {
            segment.words.push(word);
        }
    }

    /// Whether there is no word yet.
    fn is_first(&self) -> bool {
        self.position.current.is_none_or(|current| self.segments[current].words.is_empty())
    }

    fn is_assigning(&self) -> bool {
        let first = self.position.current.and_then(|current| self.segments[current].words.first());
        first.is_some_and(|first| ASSIGNING.contains(&self.slice(first.span)))
    }

    /// Whether the next word is a program to the shell: the first, or the first behind `time`, which is a keyword.
    fn is_program(&self) -> bool {
        let words = self.position.current.map_or(&[][..], |current| &self.segments[current].words);
        let mut words = words.iter().map(|word| self.slice(word.span));
        words.next().is_none_or(|first| first == "time" && words.all(|word| matches!(word, "time" | "-p" | "--")))
    }

    /// All words of `span`, for a command whose words the grammar does not tell apart.
    pub(super) fn words(&mut self, span: Span) {
        let mut at = span.start;
        loop {
            at += self.text[at..span.end].len() - self.text[at..span.end].trim_start_matches([' ', '\t']).len();
            if at == span.end {
                return;
            }
            let Some(reading) = word::read(&self.text[..span.end], at, Place::Argument).filter(|word| word.end > at)
            else {
                return self.disagree();
            };
            self.word(Span { start: at, end: reading.end });
            at = reading.end;
        }
    }

    fn assignment(&mut self, span: Span, form: &word::AssignmentForm<'_>) {
        let value = Span { start: span.start + form.value, end: span.end };
        let is_array = self.slice(value).starts_with('(');
        if form.unusual || is_array {
            self.doubt(span, DoubtKind::Unusual);
        }
        let value = if is_array { Word { span: value, value: unknown() } } else { self.read(value, Place::Assignment) };
        let name = form.name.to_owned();
        if let Some(segment) = self.segment() {
            segment.assignments.push(Assignment { span, name, value });
        }
    }

    fn target(&mut self, operator: Operator, span: Span) {
        let sign = self.slice(operator.span);
        let place = if matches!(sign, "<<" | "<<-") { Place::Delimiter } else { Place::Argument };
        let target = self.read(span, place);
        let start = operator.descriptor.map_or(operator.span.start, |descriptor| descriptor.start);
        let whole = Span { start, end: span.end };
        let descriptor = operator.descriptor.and_then(|descriptor| self.slice(descriptor).parse().ok());
        if operator.descriptor.is_some() && descriptor.is_none() {
            self.doubt(whole, DoubtKind::Unusual);
        }
        let (kind, doubt) = redirection(sign, &target.value);
        if let Some(doubt) = doubt {
            self.doubt(whole, doubt);
        }
        let raw = self.slice(span);
        if sign == ">&"
            && kind == RedirectKind::Write
            && (descriptor.is_some() || raw.starts_with('-') || raw.ends_with('-'))
        {
            // `2>&word` is an error, `>&-` a sign of its own whatever follows, and `>&word-` closes what it copies.
            self.doubt(whole, DoubtKind::Unusual);
        }
        if let Some(segment) = self.segment() {
            segment.redirects.push(Redirect { span: whole, descriptor, kind, target });
        }
    }

    /// Reads the word that the grammar sees at `span`.
    fn read(&mut self, span: Span, place: Place) -> Word {
        let reading = word::read(&self.text[..span.end], span.start, place);
        let ends = self.is_nested() || word::ends_before(&self.text[span.end..]);
        let value = match reading {
            Some(reading) if reading.end == span.end && ends => {
                self.doubts.extend(reading.doubts);
                reading.value
            }
            // A bracket in a comment or a case hides the end of a substitution from the reader. That is doubt enough.
            Some(reading) if reading.substitutes() => {
                for doubt in reading.doubts {
                    self.doubt(span, doubt.kind);
                }
                reading.value
            }
            _ => {
                self.disagree();
                unknown()
            }
        };
        Word { span, value }
    }

    /// The grammar and our own reading differ. Within something doubtful that says nothing new.
    fn disagree(&mut self) {
        if !self.is_nested() {
            self.doubt(Span { start: 0, end: self.text.len() }, DoubtKind::Disagreement);
        }
    }

    fn segment(&mut self) -> Option<&mut Segment> {
        self.position.current.and_then(|current| self.segments.get_mut(current))
    }

    /// A part of a command.
    fn part(&mut self, span: Span) {
        let role = std::mem::replace(&mut self.role, Role::Inner);
        self.token(span, role);
    }

    fn token(&mut self, span: Span, role: Role) {
        if !self.is_nested() {
            self.tokens.push(Token { span, role });
        }
    }

    /// Whether there is nothing but blanks and comments between the tokens, and a line break where a command begins
    /// without a joint and nowhere within one.
    fn all_is_seen(&self) -> bool {
        let (mut at, mut before) = (0, Role::Joint);
        let is_seen = self.tokens.iter().all(|token| {
            let gap = self.text.get(at..token.span.start).and_then(gap);
            let fits = match (before, token.role) {
                (Role::Joint, Role::First) => gap.is_some(),
                (Role::First | Role::Inner, Role::First) => gap == Some(Gap::Break),
                (_, Role::Inner | Role::Joint) => gap == Some(Gap::Blank),
            };
            (at, before) = (token.span.end, token.role);
            fits
        });
        is_seen && self.text.get(at..).and_then(gap).is_some()
    }
}

/// What lies between two tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    /// Nothing, blanks, or a comment.
    Blank,
    /// The same with line breaks.
    Break,
}

/// What kind of gap `text` is, if it is one.
fn gap(text: &str) -> Option<Gap> {
    let mut lines = text.split('\n').map(|line| line.trim_start_matches([' ', '\t']));
    let is_empty = lines.all(|line| line.is_empty() || line.starts_with('#'));
    is_empty.then_some(if text.contains('\n') { Gap::Break } else { Gap::Blank })
}

fn unknown() -> Value {
    Value::Dynamic { prefix: String::new(), expansions: Vec::new(), splits: true }
}

/// What a redirection with this sign and target does, and what is doubtful about it.
pub(super) fn redirection(sign: &str, target: &Value) -> (RedirectKind, Option<DoubtKind>) {
    let is_number = match target {
        Value::Literal(text) => text == "-" || (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())),
        Value::Dynamic { .. } => false,
    };
    match sign {
        "<" => (RedirectKind::Read, None),
        ">&" | "<&" if is_number => (RedirectKind::Duplicate, None),
        ">" | ">>" | ">|" | "&>" | "&>>" | "<>" | ">&" => (RedirectKind::Write, None),
        "<<" | "<<-" => (RedirectKind::HereDocument, Some(DoubtKind::HereDocument)),
        "<<<" => (RedirectKind::HereString, Some(DoubtKind::HereString)),
        // `<&word`, and any sign that is not known here.
        _ => (RedirectKind::Write, Some(DoubtKind::Unusual)),
    }
}

/// From the first word or assignment to the last; of redirections if there is nothing else.
fn extent(segment: &Segment) -> Span {
    let words = segment.assignments.iter().map(|part| part.span).chain(segment.words.iter().map(|word| word.span));
    let hull =
        |spans: &mut dyn Iterator<Item = Span>| spans.reduce(|all, next| Span { start: all.start, end: next.end });
    hull(&mut words.into_iter())
        .or_else(|| hull(&mut segment.redirects.iter().map(|redirect| redirect.span)))
        .unwrap_or(Span { start: 0, end: 0 })
}
