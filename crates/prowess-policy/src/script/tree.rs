//! The first grammar: tree-sitter's, which knows the place of every byte.
//!
//! Its tree is walked once, without recursion, for a hostile text makes it as deep as it is long. Whatever the walk does
//! not know by name is a doubt.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tree_sitter::{LogType, Node, ParseOptions, ParseState, Parser, Point, Tree, TreeCursor};

use super::doubts::Doubts;
use super::draft::{Draft, Position};
use super::{DoubtKind, Joint, Segment, Span};

/// The text is handed over in pieces of this size, so that what the lexer reads again and again can be counted.
const CHUNK: usize = 512;

/// How often, on average, each piece may be asked for.
const MAX_READS_PER_CHUNK: usize = 8;

/// A short text counts as one of so many pieces.
const MIN_CHUNKS: usize = 16;

/// Hundreds of steps of the parser; enough for some 2500 words.
const MAX_STEPS: usize = 128;

/// Up to this many bytes an error is allowed to take its time, and is shown where it is.
const MAX_QUIET: usize = 256;

/// The parser's time grows with the square of the number of pipes.
const MAX_PIPES: usize = 256;

/// Reads `text` into segments and notes every doubt.
pub(super) fn read(text: &str, doubts: &mut Doubts) -> Vec<Segment> {
    match parse(text) {
        Ok(tree) => lower(text, &tree, doubts),
        Err(kind) => {
            doubts.push(Span { start: 0, end: text.len() }, kind);
            Vec::new()
        }
    }
}

thread_local! {
    /// Making a parser costs more than reading a command with it.
    static PARSER: RefCell<Option<Parser>> = RefCell::new(parser());
}

fn parser() -> Option<Parser> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).is_ok().then_some(parser)
}

fn parse(text: &str) -> Result<Tree, DoubtKind> {
    if text.bytes().filter(|byte| *byte == b'|').count() > MAX_PIPES {
        return Err(DoubtKind::TooLong);
    }
    if upsets_lexer(text) {
        return Err(DoubtKind::Disagreement);
    }
    PARSER.with_borrow_mut(|parser| {
        // Without a parser nothing is certain.
        parser.as_mut().ok_or(DoubtKind::Disagreement).and_then(|parser| parse_with(parser, text))
    })
}

/// Whether the lexer would look a letter up in a table that only has the first of them: behind `{`, where it expects the
/// digits of `{1..3}`, it does so with whatever stands there, and reads memory that is not the table's.
fn upsets_lexer(text: &str) -> bool {
    text.match_indices('{').any(|(at, _)| {
        let behind = text[at + 1..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        behind.starts_with(|c: char| !c.is_ascii())
    })
}

fn parse_with(parser: &mut Parser, text: &str) -> Result<Tree, DoubtKind> {
    let failed = Arc::new(AtomicBool::new(false));
    if text.len() > MAX_QUIET {
        parser.set_logger(Some(Box::new(alarm(Arc::clone(&failed)))));
    }
    let mut reads = MAX_READS_PER_CHUNK * (text.len() / CHUNK).max(MIN_CHUNKS);
    let mut read = |at: usize, _: Point| {
        let is_over = reads == 0 || failed.load(Relaxed);
        reads = reads.saturating_sub(1);
        if is_over { "" } else { chunk(text, at) }
    };
    let mut steps = MAX_STEPS;
    let mut watch = |state: &ParseState| {
        steps = steps.saturating_sub(1);
        failed.fetch_or(state.has_error(), Relaxed);
        if steps == 0 || failed.load(Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut watch);
    let tree = parser.parse_with_options(&mut read, None, Some(options));
    parser.set_logger(None);
    parser.reset();
    match tree {
        _ if failed.load(Relaxed) => Err(DoubtKind::Syntax),
        _ if reads == 0 => Err(DoubtKind::TooLong),
        tree => tree.ok_or(DoubtKind::TooLong),
    }
}

/// Notes when no reading of the text is left without an error. To find the least error the parser would go on for very
/// long; that there is one is all we need. It tells nobody but its log.
fn alarm(failed: Arc<AtomicBool>) -> impl FnMut(LogType, &str) + Send + 'static {
    move |_, message| {
        if message.starts_with("resume version") {
            failed.store(true, Relaxed);
        }
    }
}

/// About [`CHUNK`] bytes of `text` from `at` on. No character is cut: the lexer would ask for the rest of it, and crash
/// if it were told that there is none.
fn chunk(text: &str, at: usize) -> &str {
    let rest = text.get(at..).unwrap_or_default();
    let end = (CHUNK..rest.len()).find(|end| rest.is_char_boundary(*end)).unwrap_or(rest.len());
    &rest[..end]
}

/// What the children of a node are part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Context {
    /// Commands and what joins them.
    Script,
    /// A simple command.
    Command,
    /// A redirection to or from a file, or a here-string.
    Redirect,
    /// The line of a here-document and its body.
    HereDocument,
    /// A word, or an expression: only the scripts within it matter.
    Word,
}

/// A node whose children are being visited.
struct Level {
    context: Context,
    /// Where to go on behind a script within the script.
    back: Option<Position>,
    /// Whether its end is the end of a command.
    ends: bool,
}

/// What to do after a node.
enum Next {
    /// Its children do not matter.
    Skip,
    /// Its children come next.
    Into(Level),
}

fn lower(text: &str, tree: &Tree, doubts: &mut Doubts) -> Vec<Segment> {
    let root = tree.root_node();
    if root.has_error() {
        doubts.push(first_error(root), DoubtKind::Syntax);
        return Vec::new();
    }
    let mut walk = Walk { draft: Draft::new(text, doubts) };
    walk.all(&mut root.walk());
    walk.draft.finish()
}

fn span(node: Node<'_>) -> Span {
    Span { start: node.start_byte(), end: node.end_byte() }
}

fn first_error(root: Node<'_>) -> Span {
    let mut cursor = root.walk();
    while !cursor.node().is_error() && cursor.goto_first_child() {
        while !cursor.node().has_error() && cursor.goto_next_sibling() {}
    }
    span(cursor.node())
}

struct Walk<'t> {
    draft: Draft<'t>,
}

impl Walk<'_> {
    fn all(&mut self, cursor: &mut TreeCursor<'_>) {
        let mut levels = vec![Level { context: Context::Script, back: None, ends: false }];
        while let Some(level) = levels.last() {
            if let Next::Into(inner) = self.visit(cursor.node(), level.context) {
                if cursor.goto_first_child() {
                    levels.push(inner);
                    continue;
                }
                self.leave(&inner);
            }
            while !cursor.goto_next_sibling() {
                let Some(level) = levels.pop() else { return };
                self.leave(&level);
                if !cursor.goto_parent() {
                    return;
                }
            }
        }
    }

    fn leave(&mut self, level: &Level) {
        if let Some(back) = level.back {
            self.draft.leave(back);
        }
        if level.ends {
            self.draft.end();
        }
    }

    /// Takes note of a node, and says what its children are part of, if they matter.
    fn visit(&mut self, node: Node<'_>, context: Context) -> Next {
        match context {
            _ if node.kind() == "comment" => Next::Skip,
            Context::Script => self.visit_statement(node),
            Context::Command => self.visit_part(node),
            Context::Redirect => self.visit_redirect(node),
            Context::HereDocument => self.visit_here_document(node),
            Context::Word => self.visit_inside(node),
        }
    }

    fn visit_statement(&mut self, node: Node<'_>) -> Next {
        let (kind, span) = (node.kind(), span(node));
        match kind {
            "program" | "list" | "pipeline" | "negated_command" => within(Context::Script),
            "redirected_statement" => {
                // If it is only redirections, they do not belong to the command before it.
                self.draft.end();
                within(Context::Script)
            }
            "command" | "declaration_command" | "unset_command" | "variable_assignments" => {
                self.draft.begin();
                within(Context::Command)
            }
            "variable_assignment" => {
                self.draft.begin();
                self.word(node)
            }
            "test_command" if !self.draft.slice(span).starts_with("[[") => {
                self.draft.begin();
                self.draft.words(span);
                within(Context::Word)
            }
            "file_redirect" | "herestring_redirect" => within(Context::Redirect),
            "heredoc_redirect" => Next::Into(Level { context: Context::HereDocument, back: None, ends: true }),
            "subshell" => self.script(span, DoubtKind::Subshell),
            "compound_statement" if !self.draft.slice(span).starts_with("((") => self.script(span, DoubtKind::Group),
            "compound_statement"
            | "test_command"
            | "for_statement"
            | "c_style_for_statement"
            | "while_statement"
            | "if_statement"
            | "case_statement" => self.script(span, DoubtKind::Compound),
            "function_definition" => self.script(span, DoubtKind::Function),
            "!" => self.leaf(|draft| draft.negate(span)),
            "&&" => self.leaf(|draft| draft.join(span, Joint::And)),
            "||" => self.leaf(|draft| draft.join(span, Joint::Or)),
            "|" => self.leaf(|draft| draft.join(span, Joint::Pipe)),
            "|&" => self.leaf(|draft| draft.join(span, Joint::PipeBoth)),
            ";" | "\n" => self.leaf(|draft| draft.join(span, Joint::Then)),
            "&" => self.leaf(|draft| {
                draft.doubt(span, DoubtKind::Background);
                draft.join(span, Joint::Background);
            }),
            "do_group" | "elif_clause" | "else_clause" | "case_item" if self.draft.is_nested() => {
                within(Context::Script)
            }
            _ if self.draft.is_nested() => self.visit_inside(node),
            ";;" => self.leaf(|draft| draft.doubt(span, DoubtKind::Syntax)),
            _ => self.unknown(span),
        }
    }

    fn visit_part(&mut self, node: Node<'_>) -> Next {
        match node.kind() {
            "command_name"
            | "variable_assignment"
            | "variable_name"
            | "regex"
            | "declare"
            | "typeset"
            | "export"
            | "readonly"
            | "local"
            | "unset"
            | "unsetenv"
            | "=~"
            | "=="
            | "$" => self.word(node),
            "file_redirect" | "herestring_redirect" => within(Context::Redirect),
            kind if is_word(kind) => self.word(node),
            // `name (…)` means nothing in any shell.
            "subshell" => self.script(span(node), DoubtKind::Syntax),
            _ => self.unknown(span(node)),
        }
    }

    fn visit_redirect(&mut self, node: Node<'_>) -> Next {
        let span = span(node);
        match node.kind() {
            "file_descriptor" => self.leaf(|draft| draft.descriptor(span)),
            "<" | ">" | ">>" | "&>" | "&>>" | "<&" | ">&" | ">|" | "<&-" | ">&-" | "<<<" => {
                self.leaf(|draft| draft.operator(span))
            }
            kind if is_word(kind) => self.word(node),
            _ => self.unknown(span),
        }
    }

    /// Behind the delimiter the line goes on: with more words, redirections or commands.
    fn visit_here_document(&mut self, node: Node<'_>) -> Next {
        let span = span(node);
        match node.kind() {
            "file_descriptor" => self.leaf(|draft| draft.descriptor(span)),
            "<<" | "<<-" => self.leaf(|draft| draft.operator(span)),
            "heredoc_start" => self.leaf(|draft| draft.word(span)),
            "heredoc_body" => within(Context::Word),
            "heredoc_end" | "\n" => Next::Skip,
            kind if is_word(kind) => self.word(node),
            _ => self.visit_statement(node),
        }
    }

    fn visit_inside(&mut self, node: Node<'_>) -> Next {
        match node.kind() {
            "command_substitution" => self.script(span(node), DoubtKind::Substitution),
            "process_substitution" => self.script(span(node), DoubtKind::ProcessSubstitution),
            _ => within(Context::Word),
        }
    }

    fn word(&mut self, node: Node<'_>) -> Next {
        self.draft.word(span(node));
        self.visit_inside(node)
    }

    /// A script within the script.
    fn script(&mut self, span: Span, doubt: DoubtKind) -> Next {
        self.draft.doubt(span, doubt);
        Next::Into(Level { context: Context::Script, back: Some(self.draft.enter()), ends: false })
    }

    fn leaf(&mut self, note: impl FnOnce(&mut Draft<'_>)) -> Next {
        note(&mut self.draft);
        Next::Skip
    }

    fn unknown(&mut self, span: Span) -> Next {
        self.draft.doubt(span, DoubtKind::Unusual);
        within(Context::Word)
    }
}

fn within(context: Context) -> Next {
    Next::Into(Level { context, back: None, ends: false })
}

fn is_word(kind: &str) -> bool {
    matches!(
        kind,
        "word"
            | "string"
            | "raw_string"
            | "translated_string"
            | "ansi_c_string"
            | "number"
            | "expansion"
            | "simple_expansion"
            | "command_substitution"
            | "process_substitution"
            | "arithmetic_expansion"
            | "brace_expression"
            | "concatenation"
    )
}
