//! The request: what was said, was a skill called by name, and which facts are in it for certain?

use prowess_skills::resolve;

use crate::skills::SkillSet;

/// The longest request whose facts are looked for, in bytes.
const MAX_REQUEST: usize = 8 * 1024;

/// The longest place, in words.
const MAX_PLACE_WORDS: usize = 4;

/// What a person wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    /// What they said, without what only names a skill.
    pub text: String,
    /// The skills they named outright, in order.
    pub named: Vec<String>,
    /// Whether the text is what follows a command rather than a sentence.
    pub form: Form,
}

/// How something was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// In a sentence.
    Sentence,
    /// As the arguments of a slash command.
    Arguments,
}

impl Said {
    /// A sentence that names no skill.
    pub(crate) fn sentence(text: &str) -> Self {
        Self { text: text.trim().to_owned(), named: Vec::new(), form: Form::Sentence }
    }

    /// What they said without what stands in double quotes.
    pub(crate) fn unquoted(&self) -> String {
        let pieces: Vec<&str> = self.text.split('"').collect();
        // An odd quotation mark quotes nothing.
        let pairs = if pieces.len() % 2 == 1 { pieces.iter().step_by(2).copied().collect() } else { pieces };
        pairs.join(" ")
    }

    /// Reads a message as a person or a slash command wrote it.
    pub(crate) fn read(message: &str, skills: &SkillSet) -> Self {
        let message = message.trim();
        if let Some(call) = resolve(message, &skills.commands) {
            let (text, named) = (call.args.unwrap_or_default().to_owned(), vec![call.command.skill.to_string()]);
            return Self { text, named, form: Form::Arguments };
        }
        if let Some(said) = Self::rewritten(message, skills) {
            return said;
        }
        let named = references(message, skills);
        Self { named: named.clone(), ..Self::sentence(&without_signs(message.to_owned(), &named)) }
    }

    /// What a slash command becomes on its way to a model: an instruction that names skills, then what was said.
    fn rewritten(message: &str, skills: &SkillSet) -> Option<Self> {
        let marks = [("User input:", Form::Arguments), ("User request:", Form::Sentence)].into_iter();
        let mut parts =
            marks.filter_map(|(mark, form)| message.split_once(mark).map(|(head, text)| (head, text, form)));
        // The first mark counts: what comes after it is the person's.
        let first = parts.by_ref().min_by_key(|(head, ..)| head.len());
        let (head, text, form) = first.unwrap_or((message, "", Form::Arguments));
        let text = text.trim();
        let opening = head.lines().next().unwrap_or_default();
        let is_instruction = opening.contains("skill") && (first.is_some() || opening.starts_with("Use the \""));
        if !is_instruction {
            return None;
        }
        let quoted = |line: &str| line.split('"').nth(1).map(str::to_owned);
        let listed = head.lines().skip(1).filter_map(|line| line.trim().strip_prefix("- "));
        let listed =
            listed.filter_map(|line| quoted(line).or_else(|| line.split([' ', ':', '(']).next().map(str::to_owned)));
        let named = quoted(opening).into_iter().chain(listed).filter(|name| skills.find(name).is_some());
        let named: Vec<String> = named.collect();
        if named.is_empty() {
            return None;
        }
        // The original may still have the command in front.
        let inner = resolve(text, &skills.commands).map(|call| call.args.unwrap_or_default().to_owned());
        let form = if inner.is_some() { Form::Arguments } else { form };
        let text = without_signs(inner.unwrap_or_else(|| text.to_owned()), &named);
        Some(Self { text, named, form })
    }
}

/// `text` with `$name` as the plain word.
fn without_signs(text: String, named: &[String]) -> String {
    named.iter().fold(text, |text, name| text.replace(&format!("${name}"), name))
}

/// The skills that `message` refers to as `$name`.
fn references(message: &str, skills: &SkillSet) -> Vec<String> {
    let mut named: Vec<String> = Vec::new();
    for piece in message.split('$').skip(1) {
        let name: String = piece.chars().take_while(|c| c.is_alphanumeric() || "_-:".contains(*c)).collect();
        let name = name.trim_end_matches(':');
        if skills.find(name).is_some() && !named.iter().any(|known| known == name) {
            named.push(name.to_owned());
        }
    }
    named
}

/// What a placeholder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A town or the like.
    Place,
    /// `owner/name`.
    Repo,
    /// The owner of a repository.
    Owner,
    /// The name of a repository.
    RepoName,
    /// The number of an issue or the like.
    Number,
    /// An address on the web.
    Url,
    /// A file.
    Path,
    /// Somebody's words.
    Text,
    /// An e-mail address.
    Email,
    /// What something new is to be called.
    Name,
    /// Something a request does not say.
    Unsaid,
}

impl Kind {
    /// What a placeholder of that name stands for; `None` when that is no name of a placeholder.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let lower = name.to_lowercase().replace(['_', ' '], "-");
        let own = lower.strip_prefix("your-");
        if lower.starts_with("path/to/") {
            return Some(Self::Path);
        }
        Some(match own.unwrap_or(&lower) {
            "city" | "place" | "location" | "town" | "city-name" | "country" | "destination" => Self::Place,
            "owner/repo" | "owner/name" | "org/repo" | "user/repo" => Self::Repo,
            "owner" | "org" => Self::Owner,
            "repo" | "repository" | "repo-name" => Self::RepoName,
            "number" | "num" | "issue" | "issue-number" | "issue-id" | "pr" | "pr-number" => Self::Number,
            "url" | "link" | "uri" | "website" => Self::Url,
            "file" | "path" | "filename" | "file-path" | "filepath" | "input" | "input-file" => Self::Path,
            "query" | "search" | "term" | "keyword" | "keywords" | "text" | "message" | "title" | "subject"
            | "body" | "command" | "content" | "description" | "search-term" | "search-query" | "prompt" => Self::Text,
            "email" | "recipient" | "email-address" => Self::Email,
            "name" | "new-name" | "skill-name" | "session-name" => Self::Name,
            "id" | "token" | "key" | "api-key" | "date" | "user" | "username" | "branch" | "tag" | "sha"
            | "session" | "session-id" | "target" | "value" | "output" | "channel" | "account" | "project"
            | "run-id" => Self::Unsaid,
            _ if own.is_some() || lower.ends_with("xxx") => Self::Unsaid,
            _ if name.starts_with(char::is_lowercase) && lower.contains('-') => Self::Unsaid,
            _ => return None,
        })
    }
}

impl Kind {
    /// How a request says it for certain.
    pub(crate) fn wording(self) -> Option<&'static str> {
        Some(match self {
            Self::Place => "`in CITY`",
            Self::Repo | Self::Owner | Self::RepoName => "`of OWNER/REPO`",
            Self::Number => "`issue NUMBER`",
            Self::Url => "the address, with `https://`",
            Self::Path => "the file, as `./FILE`",
            Self::Text => "the text in double quotes",
            Self::Email => "the e-mail address",
            Self::Name => "`called NAME`",
            Self::Unsaid => return None,
        })
    }
}

/// What a request says for certain: once, and in a form that means nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    place: Option<String>,
    repo: Option<String>,
    owner: Option<String>,
    repo_name: Option<String>,
    number: Option<String>,
    url: Option<String>,
    path: Option<String>,
    text: Option<String>,
    email: Option<String>,
    name: Option<String>,
}

impl Facts {
    /// Looks for them.
    pub(crate) fn read(said: &Said) -> Self {
        let text = super::words::cut(&said.text, MAX_REQUEST);
        let tokens: Vec<&str> = text.split_whitespace().map(bare).collect();
        let one = |is: fn(&str) -> bool| only(tokens.iter().copied().filter(|token| is(token)).map(str::to_owned));
        let url = one(is_url);
        let repo = one(is_repo).or_else(|| {
            let path = url.as_deref()?.split_once("github.com/")?.1;
            let mut parts = path.split('/');
            Some(format!("{}/{}", parts.next()?, parts.next()?)).filter(|repo| is_repo(repo))
        });
        let (owner, repo_name) = repo.as_deref().and_then(|repo| repo.split_once('/')).unzip();
        Self {
            place: place(said.form, text),
            owner: owner.map(str::to_owned),
            repo_name: repo_name.map(str::to_owned),
            number: number(said.form, &tokens),
            path: one(is_path),
            text: quoted(text),
            email: one(is_email),
            name: called(&tokens),
            url,
            repo,
        }
    }

    /// What is known of that kind.
    pub(crate) fn value(&self, kind: Kind) -> Option<&str> {
        match kind {
            Kind::Place => self.place.as_deref(),
            Kind::Repo => self.repo.as_deref(),
            Kind::Owner => self.owner.as_deref(),
            Kind::RepoName => self.repo_name.as_deref(),
            Kind::Number => self.number.as_deref(),
            Kind::Url => self.url.as_deref(),
            Kind::Path => self.path.as_deref(),
            Kind::Text => self.text.as_deref(),
            Kind::Email => self.email.as_deref(),
            Kind::Name => self.name.as_deref(),
            Kind::Unsaid => None,
        }
    }
}

const SURROUNDING: [char; 14] = ['.', ',', ';', ':', '!', '?', '"', '\'', '(', ')', '“', '”', '`', '…'];

/// A word without what surrounds it; a dot in front is part of a path.
fn bare(token: &str) -> &str {
    token.trim_start_matches(['"', '\'', '(', '“', '`']).trim_end_matches(SURROUNDING)
}

fn is_url(token: &str) -> bool {
    ["http://", "https://"].iter().any(|start| token.len() > start.len() + 3 && token.starts_with(start))
}

fn is_repo(token: &str) -> bool {
    let is_name = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
            && part.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    // `and/or` is no repository.
    token
        .split_once('/')
        .is_some_and(|(owner, name)| is_name(owner) && is_name(name) && !["and", "or"].contains(&owner))
}

fn is_path(token: &str) -> bool {
    let starts = ["/", "./", "../", "~/"].iter().any(|start| token.len() > start.len() && token.starts_with(start));
    let ending = token.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty()
            && (1..=5).contains(&ending.len())
            && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && ending.bytes().any(|byte| byte.is_ascii_alphabetic())
    });
    starts || ending && !is_url(token) && !token.contains('@')
}

fn is_email(token: &str) -> bool {
    token.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.') && !host.starts_with('.'))
}

/// `#12`, `issue 12`, `pull request 12`; alone where only arguments are given.
fn number(form: Form, tokens: &[&str]) -> Option<String> {
    let is_number =
        |token: &str| !token.is_empty() && token.len() < 12 && token.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = tokens.iter().enumerate().filter_map(|(place, token)| {
        if let Some(number) = token.strip_prefix('#') {
            return is_number(number).then(|| number.to_owned());
        }
        let before = place.checked_sub(1).map(|place| tokens[place].to_lowercase()).unwrap_or_default();
        let kind = ["issue", "pr", "request", "ticket", "run", "number", "job", "mr", "bug"].contains(&before.as_str());
        (is_number(token) && (kind || form == Form::Arguments)).then(|| (*token).to_owned())
    });
    only(numbers)
}

/// The word after `called` or `named`.
fn called(tokens: &[&str]) -> Option<String> {
    let pairs = tokens.windows(2).filter(|pair| ["called", "named"].contains(&pair[0].to_lowercase().as_str()));
    let is_name = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphanumeric())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    only(pairs.map(|pair| pair[1]).filter(|word| is_name(word)).map(str::to_owned))
}

/// What stands in quotes.
fn quoted(text: &str) -> Option<String> {
    let straight: Vec<&str> = text.split('"').collect();
    let straight = (straight.len() == 3).then(|| straight[1].to_owned());
    let curly = text.split_once('“').and_then(|(_, rest)| rest.split_once('”')).map(|(text, _)| text.to_owned());
    only(straight.into_iter().chain(curly)).filter(|text| !text.trim().is_empty())
}

/// The one place that is named.
fn place(form: Form, text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut found = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let preposition = word.to_lowercase();
        if ["in", "at", "for", "near", "around", "from", "to", "of"].contains(&preposition.as_str()) {
            found.extend(named(&words[place + 1..]).or_else(|| small(&preposition, &words[place + 1..])));
        }
    }
    if found.is_empty() {
        found.extend(before_weather(text));
    }
    if found.is_empty() && form == Form::Arguments {
        let all: Vec<&str> = words.iter().copied().take_while(|word| !is_time(word)).collect();
        let is_short = (1..=MAX_PLACE_WORDS).contains(&all.len());
        let is_name = all.iter().all(|word| word.chars().all(|c| c.is_alphabetic() || "-,.'’".contains(c)));
        found.extend((is_short && is_name).then(|| all.join(" ").trim_matches(SURROUNDING).to_owned()));
    }
    only(found.into_iter())
}

/// The place in `上海天气怎么样` or `明天北京会下雨吗`: what stands before the weather, without times and particles.
fn before_weather(text: &str) -> Option<String> {
    let about = ["天气", "天氣", "天気", "气温", "氣溫", "下雨", "下雪"];
    let end = about.iter().filter_map(|word| text.find(word)).min()?;
    let mut place = text[..end].rsplit(|c: char| !c.is_alphabetic()).next()?;
    let around = [
        "请问",
        "我想知道",
        "查一下",
        "查询",
        "今天",
        "明天",
        "后天",
        "今日",
        "明日",
        "现在",
        "会不会",
        "会",
        "要",
        "的",
        "の",
    ];
    while let Some(rest) = around.iter().find_map(|word| place.strip_prefix(word).or_else(|| place.strip_suffix(word)))
    {
        place = rest;
    }
    let count = place.chars().count();
    ((2..=8).contains(&count) && !place.is_ascii()).then(|| place.to_owned())
}

/// A place written as a name: `New York`, `Rio de Janeiro`, `Porto, Portugal`.
fn named(words: &[&str]) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for word in words.iter().take(MAX_PLACE_WORDS) {
        let bare = word.trim_matches(SURROUNDING);
        let is_name = bare.starts_with(char::is_uppercase) && bare.chars().any(char::is_lowercase) && !is_time(bare);
        let joins = ["de", "la", "del", "am", "an", "der", "of", "the"].contains(&bare) && !parts.is_empty();
        if !is_name && !joins {
            break;
        }
        let ends = word.ends_with(['.', '!', '?', ';', ':', ')']);
        parts.push(if ends { bare } else { word.trim_start_matches(SURROUNDING) });
        if ends {
            break;
        }
    }
    while parts.last().is_some_and(|last| last.starts_with(char::is_lowercase)) {
        parts.pop();
    }
    let all = parts.join(" ");
    let all = all.trim_matches(SURROUNDING);
    // With letters only: a version or a file is no place.
    (!all.is_empty() && all.chars().all(|c| c.is_alphabetic() || " ,-'’.".contains(c))).then(|| all.to_owned())
}

/// A place written in small letters, which is certain only after `in` and up to the end or a time.
fn small(preposition: &str, words: &[&str]) -> Option<String> {
    let until = words.iter().position(|word| is_time(word)).unwrap_or(words.len());
    let all = words[..until].join(" ");
    let all = all.trim_matches(SURROUNDING);
    let fits = preposition == "in"
        && (1..=3).contains(&until)
        && all.chars().all(|c| c.is_alphabetic() || " -,".contains(c))
        && !all.split([' ', ',']).any(|word| NOT_PLACES.contains(&word.to_lowercase().as_str()));
    fits.then(|| all.to_owned()).filter(|all| !all.is_empty())
}

fn is_time(word: &str) -> bool {
    let word = word.trim_matches(SURROUNDING).to_lowercase();
    TIMES.contains(&word.as_str())
}

#[rustfmt::skip]
const TIMES: &[&str] = &[
    "today", "tonight", "tomorrow", "now", "this", "next", "on", "at", "right", "currently", "later", "over",
    "please", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "january", "february",
    "march", "april", "may", "june", "july", "august", "september", "october", "november", "december", "christmas",
    "easter",
];

#[rustfmt::skip]
const NOT_PLACES: &[&str] = &[
    "the", "a", "an", "my", "our", "your", "his", "her", "their", "it", "me", "us", "all", "any", "general", "detail",
    "details", "short", "total", "celsius", "fahrenheit", "degrees", "metric", "english", "german", "french",
    "spanish", "chinese", "json", "csv", "markdown", "minutes", "hours", "days", "weeks", "two", "three", "order",
    "case", "time", "one", "advance", "and", "or", "with", "that", "which", "what", "here", "there", "background",
    "parallel",
];

/// The only one there is; of equals one.
fn only(mut values: impl Iterator<Item = String>) -> Option<String> {
    let first = values.next()?;
    values.all(|other| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        for (text, place) in [
            ("check the weather in Shanghai", Some("Shanghai")),
            ("What's the weather in New York tomorrow?", Some("New York")),
            ("weather for Rio de Janeiro, please", Some("Rio de Janeiro")),
            ("forecast for Porto, Portugal", Some("Porto, Portugal")),
            ("weather in shanghai", Some("shanghai")),
            ("weather in new york today", Some("new york")),
            ("will it rain in the morning", None),
            ("weather in celsius", None),
            ("weather in Paris or in Rome", None),
            ("weather for Monday", None),
            ("weather in 3 days", None),
            ("what is the weather", None),
            ("上海天气", Some("上海")),
            ("上海天气怎么样", Some("上海")),
            ("明天北京会下雨吗", Some("北京")),
            ("天气怎么样", None),
            ("Wetter in Köln", Some("Köln")),
            ("in", None),
        ] {
            assert_eq!(Facts::read(&Said::sentence(text)).place.as_deref(), place, "{text}");
        }
        let arguments = |text: &str| Facts::read(&Said { form: Form::Arguments, ..Said::sentence(text) }).place;
        assert_eq!(arguments("Shanghai").as_deref(), Some("Shanghai"));
        assert_eq!(arguments("shanghai tomorrow").as_deref(), Some("shanghai"));
        assert_eq!(arguments("上海").as_deref(), Some("上海"));
        assert_eq!(arguments("the weather of my dear old home town"), None);
        assert_eq!(arguments(""), None);
    }

    #[test]
    fn other_facts() {
        let facts = |text: &str| Facts::read(&Said::sentence(text));
        assert_eq!(facts("show issue 12 of cli/cli").number.as_deref(), Some("12"));
        assert_eq!(facts("show #12 of cli/cli").repo.as_deref(), Some("cli/cli"));
        assert_eq!(facts("see https://github.com/a/b/issues/3").repo.as_deref(), Some("a/b"));
        assert_eq!(facts("issue 1 and issue 2").number, None);
        assert_eq!(facts("the last 12 of them").number, None);
        assert_eq!(facts("yes and/or no").repo, None);
        assert_eq!(facts("mail a@b.org \"the text\"").email.as_deref(), Some("a@b.org"));
        assert_eq!(facts("mail a@b.org \"the text\"").text.as_deref(), Some("the text"));
        assert_eq!(facts("convert ./in.png.").path.as_deref(), Some("./in.png"));
        assert_eq!(facts("say \"a\" and \"b\"").text, None);
        assert_eq!(facts("create a skill called deploy-notes.").name.as_deref(), Some("deploy-notes"));
        assert_eq!(facts("one named \"a\" and one named b").name, None);
        assert_eq!(facts("so called: nothing").name.as_deref(), Some("nothing"));
        assert_eq!(facts("what is it called?").name, None);
    }
}
