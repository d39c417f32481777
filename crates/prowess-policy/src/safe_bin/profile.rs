//! Profiles: which arguments keep a program to turning its input into output?

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

/// An operator's own profile: `safeBinProfiles.NAME`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CustomProfile {
    /// The fewest operands.
    #[serde(deserialize_with = "count")]
    pub min_positional: Option<usize>,
    /// The most operands; without it, any number.
    #[serde(deserialize_with = "count")]
    pub max_positional: Option<usize>,
    /// Options that take a value.
    pub allowed_value_flags: Vec<String>,
    /// Options that are refused; those that are listed nowhere are refused too.
    pub denied_flags: Vec<String>,
    /// Options that take no value.
    pub allowed_flags: Vec<String>,
}

/// A number of operands: fractions are cut off, and nothing is below zero.
fn count<'de, D: Deserializer<'de>>(source: D) -> Result<Option<usize>, D::Error> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` cuts off and stays within bounds"
    )]
    Ok(Option::<f64>::deserialize(source)?.map(|number| number as usize))
}

/// What an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    Value,
    /// A value behind `=` only.
    InlineValue,
    Denied,
}

/// The arguments a safe bin may have.
#[derive(Debug, Clone)]
pub(super) struct Profile {
    pub(super) min: usize,
    pub(super) max: Option<usize>,
    /// Every long option the program has, when we know them; without that, none may be shortened.
    pub(super) all_long: &'static [&'static str],
    options: BTreeMap<String, Takes>,
}

impl Profile {
    /// What `flag`, spelled out, takes; nothing for an option that the profile does not name.
    pub(super) fn takes(&self, flag: &str) -> Option<Takes> {
        self.options.get(flag).copied()
    }

    /// The operator's own profile of the program `name`.
    pub(super) fn custom(name: &str, own: &CustomProfile) -> Self {
        let min = own.min_positional.unwrap_or(0);
        let mut options = BTreeMap::new();
        // Later entries replace earlier ones, so a flag in two lists is read the strict way.
        for (flags, takes) in [
            (&own.allowed_flags, Takes::Nothing),
            (&own.allowed_value_flags, Takes::Value),
            (&own.denied_flags, Takes::Denied),
        ] {
            options.extend(
                flags.iter().map(|flag| flag.trim()).filter(|flag| !flag.is_empty()).map(|f| (f.to_owned(), takes)),
            );
        }
        Self {
            min,
            max: own.max_positional.map(|max| max.max(min)),
            all_long: Known::of(name).map_or(&[], |it| it.all_long),
            options,
        }
    }

    /// Our profile of the program `name`.
    pub(super) fn built_in(name: &str) -> Option<Self> {
        let known = Known::of(name)?;
        let mut options = BTreeMap::new();
        for (flags, takes) in [
            (known.switches, Takes::Nothing),
            (known.values, Takes::Value),
            (known.inline, Takes::InlineValue),
            (known.denied, Takes::Denied),
        ] {
            options.extend(flags.split_whitespace().map(|flag| (flag.to_owned(), takes)));
        }
        let (min, max) = known.operands;
        Some(Self { min, max: Some(max), all_long: known.all_long, options })
    }
}

struct Known {
    name: &'static str,
    operands: (usize, usize),
    switches: &'static str,
    values: &'static str,
    inline: &'static str,
    denied: &'static str,
    all_long: &'static [&'static str],
}

impl Known {
    fn of(name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.name == name)
    }
}

const KNOWN: &[Known] = &[
    Known {
        name: "cut",
        operands: (0, 0),
        switches: "-n -s -z --only-delimited --zero-terminated",
        values: "-b -c -d -f --bytes --characters --delimiter --fields --output-delimiter",
        inline: "",
        denied: "",
        all_long: &[
            "--bytes",
            "--characters",
            "--complement",
            "--delimiter",
            "--fields",
            "--help",
            "--no-partial",
            "--only-delimited",
            "--output-delimiter",
            "--version",
            "--whitespace-delimited",
            "--zero-terminated",
        ],
    },
    Known {
        name: "grep",
        operands: (0, 0),
        switches: "",
        values: "-A -B -C -D -e -m --after-context --before-context --binary-files --context --devices --exclude --include \
                 --label --max-count --regexp",
        inline: "",
        denied: "-R -d -f -r --dereference-recursive --directories --exclude-from --file --recursive",
        all_long: &[
            "--after-context",
            "--basic-regexp",
            "--before-context",
            "--binary",
            "--binary-files",
            "--byte-offset",
            "--color",
            "--colour",
            "--context",
            "--count",
            "--dereference-recursive",
            "--devices",
            "--directories",
            "--exclude",
            "--exclude-dir",
            "--exclude-from",
            "--extended-regexp",
            "--file",
            "--files-with-matches",
            "--files-without-match",
            "--fixed-regexp",
            "--fixed-strings",
            "--group-separator",
            "--help",
            "--ignore-case",
            "--include",
            "--initial-tab",
            "--invert-match",
            "--label",
            "--line-buffered",
            "--line-number",
            "--line-regexp",
            "--max-count",
            "--no-filename",
            "--no-group-separator",
            "--no-ignore-case",
            "--no-messages",
            "--null",
            "--null-data",
            "--only-matching",
            "--perl-regexp",
            "--quiet",
            "--recursive",
            "--regexp",
            "--silent",
            "--text",
            "--unix-byte-offsets",
            "--version",
            "--with-filename",
            "--word-regexp",
        ],
    },
    Known {
        name: "head",
        operands: (0, 0),
        switches: "-q -v -z --quiet --silent --verbose --zero-terminated",
        values: "-c -n --bytes --lines",
        inline: "",
        denied: "",
        all_long: &[
            "---presume-input-pipe",
            "--bytes",
            "--help",
            "--lines",
            "--quiet",
            "--silent",
            "--verbose",
            "--version",
            "--zero-terminated",
        ],
    },
    Known {
        name: "sort",
        operands: (0, 0),
        switches: "",
        values: "-S -k -t --batch-size --buffer-size --field-separator --key --parallel",
        inline: "",
        denied: "-T -o --compress-program --files0-from --output --random-source --temporary-directory",
        all_long: &[
            "--batch-size",
            "--buffer-size",
            "--check",
            "--compress-program",
            "--debug",
            "--dictionary-order",
            "--field-separator",
            "--files0-from",
            "--general-numeric-sort",
            "--help",
            "--human-numeric-sort",
            "--ignore-case",
            "--ignore-leading-blanks",
            "--ignore-nonprinting",
            "--key",
            "--merge",
            "--month-sort",
            "--numeric-sort",
            "--output",
            "--parallel",
            "--random-sort",
            "--random-source",
            "--reverse",
            "--sort",
            "--stable",
            "--temporary-directory",
            "--unique",
            "--version",
            "--version-sort",
            "--zero-terminated",
        ],
    },
    Known {
        name: "tail",
        operands: (0, 0),
        switches: "-q -v -z --quiet --silent --verbose --zero-terminated",
        values: "-c -n --bytes --lines --max-unchanged-stats --pid --sleep-interval",
        inline: "",
        denied: "-F -f --follow --retry",
        all_long: &[
            "---disable-inotify",
            "---presume-input-pipe",
            "--bytes",
            "--debug",
            "--follow",
            "--help",
            "--lines",
            "--max-unchanged-stats",
            "--pid",
            "--quiet",
            "--retry",
            "--silent",
            "--sleep-interval",
            "--verbose",
            "--version",
            "--zero-terminated",
        ],
    },
    Known {
        name: "tr",
        operands: (1, 2),
        switches: "-C -c -d -s -t --complement --delete --squeeze-repeats --truncate-set1",
        values: "",
        inline: "",
        denied: "",
        all_long: &["--complement", "--delete", "--help", "--squeeze-repeats", "--truncate-set1", "--version"],
    },
    Known {
        name: "uniq",
        operands: (0, 0),
        switches: "-c -d -i -u -z --count --ignore-case --repeated --unique --zero-terminated",
        values: "-f -s -w --check-chars --skip-chars --skip-fields",
        // `uniq --group FILE` reads the file: the method stands behind `=` or nowhere.
        inline: "--group",
        denied: "",
        all_long: &[
            "--all-repeated",
            "--check-chars",
            "--count",
            "--group",
            "--help",
            "--ignore-case",
            "--repeated",
            "--skip-chars",
            "--skip-fields",
            "--unique",
            "--version",
            "--zero-terminated",
        ],
    },
    Known {
        name: "wc",
        operands: (0, 0),
        switches: "-L -c -l -m -w --bytes --chars --lines --max-line-length --words",
        values: "",
        inline: "",
        denied: "--files0-from",
        all_long: &[
            "--bytes",
            "--chars",
            "--debug",
            "--files0-from",
            "--help",
            "--lines",
            "--max-line-length",
            "--total",
            "--version",
            "--words",
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_long_option_of_a_profile_is_one_the_program_has() {
        for known in KNOWN {
            assert!(known.all_long.is_sorted(), "{}", known.name);
            for flags in [known.switches, known.values, known.inline, known.denied] {
                for flag in flags.split_whitespace().filter(|flag| flag.starts_with("--")) {
                    assert!(known.all_long.contains(&flag), "{} {flag}", known.name);
                }
            }
        }
    }
}
