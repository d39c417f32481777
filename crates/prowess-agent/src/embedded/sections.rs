//! Sections: what is in the Markdown of a `SKILL.md`, and which part of it answers a request?

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::kinds::{is_bare_path, names_other_system};
use super::words::{cut, stems, strength};

/// How much of a body is read, in bytes.
pub(crate) const MAX_BODY: usize = 256 * 1024;

/// How many sections are looked at, and how many code blocks and inline pieces of one.
const MAX_SECTIONS: usize = 400;
const MAX_BLOCKS: usize = 40;

/// How much of a section's text is compared with the request, in bytes.
const MAX_COMPARED: usize = 16 * 1024;

/// A heading and what stands under it, up to the next heading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Section<'a> {
    /// The heading; empty for what comes before the first.
    pub title: String,
    /// The headings above it and its own.
    path: Vec<(HeadingLevel, String)>,
    /// Its Markdown, without the heading.
    pub text: &'a str,
    /// Its code blocks.
    pub blocks: Vec<Code>,
    /// Code within its sentences.
    pub inline: Vec<String>,
}

/// A code block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Code {
    /// Its language, in lower case; empty when it says none.
    pub language: String,
    /// The code.
    pub text: String,
}

impl Section<'_> {
    /// Whether it has code blocks that a shell would take.
    pub(crate) fn has_commands(&self) -> bool {
        self.blocks.iter().any(Code::is_shell)
    }

    /// Whether it is about a system that is not this one and that the request does not name either.
    pub(crate) fn is_elsewhere(&self, request: &str) -> bool {
        names_other_system(&self.title) && !request.to_lowercase().contains(self.title.to_lowercase().trim())
    }

    /// The headings that lead to it.
    pub(crate) fn heading(&self) -> String {
        // The first heading of a skill names the skill itself.
        let titles: Vec<&str> = self.path.iter().map(|(_, title)| title.as_str()).collect();
        let own = if titles.len() > 1 && self.path[0].0 == HeadingLevel::H1 { &titles[1..] } else { &titles[..] };
        own.join(" / ")
    }

    /// The prose, without code blocks, headings and tables.
    pub(crate) fn prose(&self) -> String {
        let mut prose = Vec::new();
        let mut fence = None;
        for line in self.text.lines() {
            let start = line.trim_start();
            let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
            match (fence, mark) {
                (None, Some(mark)) => fence = Some(mark),
                (Some(open), Some(mark)) if open == mark => fence = None,
                (None, None) if !start.starts_with('|') => prose.push(line.trim_end()),
                (None | Some(_), _) => {}
            }
        }
        let joined = prose.join("\n");
        let mut text = joined.trim().to_owned();
        while text.contains("\n\n\n") {
            text = text.replace("\n\n\n", "\n\n");
        }
        text
    }
}

impl Code {
    /// Whether a shell would take it. A block without a language is code of some kind; what it begins with tells.
    pub(crate) fn is_shell(&self) -> bool {
        match self.language.as_str() {
            "bash" | "sh" | "shell" | "zsh" | "console" | "shell-session" | "sh-session" | "terminal" => true,
            "" => self.text.trim_start().starts_with("$ ") || looks_like_command(self.text.trim_start()),
            _ => false,
        }
    }
}

/// Takes a body apart; frontmatter is left out.
pub(crate) fn parse(body: &str) -> Vec<Section<'_>> {
    let body = cut(body, MAX_BODY);
    let mut reader = Reader { body, done: Vec::new(), current: Section::default(), start: 0 };
    let options = Options::ENABLE_YAML_STYLE_METADATA_BLOCKS | Options::ENABLE_TABLES;
    let mut heading: Option<(HeadingLevel, String, usize)> = None;
    let mut code: Option<Code> = None;
    for (event, range) in Parser::new_ext(body, options).into_offset_iter() {
        if reader.done.len() >= MAX_SECTIONS {
            break;
        }
        match event {
            Event::End(TagEnd::MetadataBlock(_)) => reader.start = range.end,
            Event::Start(Tag::Heading { level, .. }) => heading = Some((level, String::new(), range.start)),
            Event::End(TagEnd::Heading(_)) => {
                if let Some((level, title, start)) = heading.take() {
                    reader.turn(level, title, start, range.end);
                }
            }
            Event::Start(Tag::CodeBlock(kind)) => {
                let language = match kind {
                    CodeBlockKind::Fenced(info) => {
                        info.split([' ', ',', '{']).next().unwrap_or_default().to_lowercase()
                    }
                    CodeBlockKind::Indented => String::new(),
                };
                code = Some(Code { language, text: String::new() });
            }
            Event::End(TagEnd::CodeBlock) => {
                let room = reader.current.blocks.len() < MAX_BLOCKS;
                reader.current.blocks.extend(code.take().filter(|_| room));
            }
            Event::Text(text) => match (&mut code, &mut heading) {
                (Some(code), _) => code.text.push_str(&text),
                (None, Some((_, title, _))) => title.push_str(&text),
                (None, None) => {}
            },
            Event::Code(text) => match &mut heading {
                Some((_, title, _)) => title.push_str(&text),
                None if reader.current.inline.len() < MAX_BLOCKS => reader.current.inline.push(text.into_string()),
                None => {}
            },
            _ => {}
        }
    }
    reader.finish()
}

/// The sections that may answer `request`, best first, and how well they do. `topic` is what the whole skill is about:
/// words that say it hardly tell its sections apart.
pub(crate) fn rank<'s, 'a>(sections: &'s [Section<'a>], request: &str, topic: &str) -> Vec<(&'s Section<'a>, f64)> {
    let topic = stems(topic);
    let mut asked = stems(request);
    asked.sort();
    asked.dedup();
    let compared: Vec<Compared> = sections.iter().map(Compared::new).collect();
    let mut scored = Vec::new();
    for (section, one) in sections.iter().zip(&compared).filter(|(section, _)| !excludes(section)) {
        let about = asked.iter().map(|stem| {
            let have = compared.iter().filter(|other| other.has(stem)).count();
            let common = f64::from(u32::try_from(have.max(1)).unwrap_or(u32::MAX)).sqrt();
            let familiar = if topic.contains(stem) { 0.3 } else { 1.0 };
            one.worth(stem) * strength(stem) * familiar / common
        });
        scored.push((section, (about.sum::<f64>() + 0.5) * suitability(section, request)));
    }
    // The sort keeps the order of equals: a skill says the usual thing first.
    scored.sort_by(|a, b| b.1.total_cmp(&a.1));
    scored
}

/// Says what a section is for by its heading: how likely is it the one to show?
fn suitability(section: &Section<'_>, request: &str) -> f64 {
    let title = section.title.to_lowercase();
    let asked = request.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| title.contains(word) && !asked.contains(word));
    let commands = if section.has_commands() { 1.0 } else { 0.15 };
    let kind =
        if has(&["install", "setup", "set up", "prerequisite", "requirement", "auth", "login", "config", "credential"])
        {
            0.4
        } else if has(&[
            "troubleshoot",
            "fail",
            "error",
            "limit",
            "note",
            "reference",
            "see also",
            "uninstall",
            "delete",
        ]) {
            0.5
        } else if ["quick", "usage", "common", "basic", "example"].iter().any(|word| title.contains(word)) {
            1.3
        } else {
            1.0
        };
    let place = if section.is_elsewhere(request) { 0.2 } else { 1.0 };
    commands * kind * place
}

/// What the headings of sections say that tell what must not be done.
#[rustfmt::skip]
const EXCLUDING: [&str; 16] = [
    "do not", "dont", "not for", "when not", "not to use", "never", "must not", "mustnt", "should not", "shouldnt",
    "forbidden", "prohibited", "anti-pattern", "avoid", "禁止", "不要",
];

/// Whether a section, or one that it is part of, says what the skill is not for.
fn excludes(section: &Section<'_>) -> bool {
    let says = |title: &str| {
        let title = title.to_lowercase().replace(['\'', '’', '*', '_'], "");
        EXCLUDING.iter().any(|words| title.contains(words))
    };
    section.path.iter().any(|(_, title)| says(title))
}

struct Compared {
    title: Vec<String>,
    text: Vec<String>,
}

impl Compared {
    fn new(section: &Section<'_>) -> Self {
        let mut text = stems(cut(section.text, MAX_COMPARED));
        text.sort();
        text.dedup();
        Self { title: stems(&section.heading()), text }
    }

    fn has(&self, stem: &String) -> bool {
        self.text.binary_search(stem).is_ok() || self.title.contains(stem)
    }

    fn worth(&self, stem: &String) -> f64 {
        let title = if self.title.contains(stem) { 3.0 } else { 0.0 };
        title + if self.text.binary_search(stem).is_ok() { 1.0 } else { 0.0 }
    }
}

struct Reader<'a> {
    body: &'a str,
    done: Vec<Section<'a>>,
    current: Section<'a>,
    start: usize,
}

impl<'a> Reader<'a> {
    /// Ends the section before the heading that stands from `start` to `end`, and begins its own.
    fn turn(&mut self, level: HeadingLevel, title: String, start: usize, end: usize) {
        let mut path = self.current.path.clone();
        self.close(start);
        path.retain(|(above, _)| *above < level);
        path.push((level, title.clone()));
        self.current = Section { title, path, ..Section::default() };
        self.start = end;
    }

    fn close(&mut self, end: usize) {
        let mut section = std::mem::take(&mut self.current);
        section.text = self.body.get(self.start..end).unwrap_or_default().trim_matches('\n');
        if !section.text.trim().is_empty() {
            self.done.push(section);
        }
    }

    fn finish(mut self) -> Vec<Section<'a>> {
        if self.done.len() < MAX_SECTIONS {
            self.close(self.body.len());
        }
        self.done
    }
}

/// Whether a piece of code that says nothing of itself reads like a command.
pub(crate) fn looks_like_command(text: &str) -> bool {
    let line = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#')).unwrap_or_default();
    let mut words = line.split_whitespace();
    let Some(first) = words.next() else { return false };
    let is_path = ["./", "../", "/", "~/", "{baseDir}/"].iter().any(|start| first.starts_with(start));
    let is_program = PROGRAMS.binary_search(&first).is_ok();
    (is_program && words.next().is_some()) || (is_path && !is_bare_path(line))
}

/// Programs that skills often call; sorted.
#[rustfmt::skip]
const PROGRAMS: &[&str] = &[
    "awk", "aws", "az", "brew", "bun", "bunx", "cargo", "cat", "cp", "curl", "deno", "df", "docker", "du", "echo",
    "ffmpeg", "ffprobe", "find", "gcloud", "gh", "git", "go", "grep", "helm", "jq", "kubectl", "ls", "magick", "make",
    "mkdir", "mv", "node", "npm", "npx", "op", "osascript", "pandoc", "pip", "pip3", "pipx", "pnpm", "podman",
    "python", "python3", "rg", "rsync", "ruby", "sed", "sqlite3", "ssh", "systemctl", "tar", "terraform", "tmux",
    "uv", "uvx", "wget", "yarn", "yt-dlp",
];

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "---\nname: x\ndescription: d\n---\n\n# Demo\n\nIntro `demo run`.\n\n## Not for\n\nOther things.\n\n\
        ## Setup\n\n```bash\ndemo login\n```\n\n## Issues\n\nRead `a`.\n\n```bash\ndemo issues\n```\n\n### Closing\n\n\
        ```bash\ndemo close 1\n```\n\n## Shape\n\n```json\n{}\n```\n";

    #[test]
    fn a_body_is_taken_apart() {
        let sections = parse(BODY);
        let titles: Vec<String> = sections.iter().map(Section::heading).collect();
        assert_eq!(titles, ["Demo", "Not for", "Setup", "Issues", "Issues / Closing", "Shape"]);
        assert_eq!(sections[0].inline, ["demo run"]);
        assert_eq!(sections[3].blocks, [Code { language: "bash".to_owned(), text: "demo issues\n".to_owned() }]);
        assert_eq!(sections[3].prose(), "Read `a`.");
        let with_commands: Vec<bool> = sections.iter().map(Section::has_commands).collect();
        assert_eq!(with_commands, [false, false, true, true, true, false]);
    }

    #[test]
    fn the_section_that_answers() {
        let sections = parse(BODY);
        for (request, title) in [
            ("show the issues", "Issues"),
            ("close this thing", "Closing"),
            ("anything", "Issues"),
            ("what is the setup", "Setup"),
            ("other things", "Issues"),
        ] {
            let ranked = rank(&sections, request, "demo");
            assert_eq!(ranked.first().map(|(found, _)| found.title.as_str()), Some(title), "{request}");
        }
        assert_eq!(rank(&parse(""), "anything", "demo"), []);
    }

    #[test]
    fn hostile_bodies_are_read_within_bounds() {
        let blocks = "```bash\necho a\n```\n".repeat(10_000);
        let sections = parse(&blocks);
        assert_eq!((sections.len(), sections[0].blocks.len()), (1, MAX_BLOCKS));
        let headings = "# h\ntext\n".repeat(10_000);
        assert_eq!(parse(&headings).len(), MAX_SECTIONS);
        for body in [
            "# a\n```bash\necho never closed",
            "---\nname: x\n",
            "````\n```\n````\n~~~\n# not a heading\n",
            "#",
            "\u{feff}# 天气\n\n```sh\ncurl 天\n```",
            "> ".repeat(5_000).as_str(),
            "[".repeat(20_000).as_str(),
            "é".repeat(MAX_BODY).as_str(),
        ] {
            assert!(parse(body).len() < 3, "{}", cut(body, 40));
        }
    }

    #[test]
    fn code_without_a_language() {
        assert!(PROGRAMS.is_sorted());
        for (text, is_command) in [
            ("curl wttr.in", true),
            ("$ anything", true),
            ("# first\ngh pr list", true),
            ("{baseDir}/scripts/run.sh", true),
            ("./run.sh", true),
            ("~/.agents/skills", false),
            ("~/bin/../notes list", true),
            ("find", false),
            ("some text", false),
            ("/", false),
            ("{\"a\": 1}", false),
            ("", false),
        ] {
            assert_eq!(Code { language: String::new(), text: text.to_owned() }.is_shell(), is_command, "{text}");
        }
    }
}
