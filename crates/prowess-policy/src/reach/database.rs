//! Clients of databases: is the text a query, or a command to the client itself?

use super::Kind::{self, InputCode, LoadsCode, StartsProgram, Writes};
use super::engine::{BASE, Style, Table, exact};
use super::{Call, Reach, farther};
use crate::wrapper::Tail;

const SQLITE: Table = Table {
    names: &["sqlite3"],
    style: Style::Words,
    long: &[("-cmd", StartsProgram), ("-init", LoadsCode), ("-zip", LoadsCode), ("-vfs", LoadsCode)],
    contains: &[
        ("load_extension", LoadsCode),
        ("edit(", StartsProgram),
        ("writefile", Writes),
        ("shellfs", LoadsCode),
        ("install ", LoadsCode),
    ],
    long_flags: &[
        "-json",
        "-csv",
        "-header",
        "-headers",
        "-column",
        "-line",
        "-list",
        "-readonly",
        "-safe",
        "-batch",
        "-bail",
        "-html",
    ],
    ..BASE
};

const PSQL: Table = Table {
    names: &["psql"],
    long: &[
        ("--file", LoadsCode),
        ("--output", StartsProgram),
        ("--log-file", Writes),
        ("--set", StartsProgram),
        ("--variable", StartsProgram),
    ],
    short: &[("-f", LoadsCode), ("-o", StartsProgram), ("-L", Writes), ("-v", StartsProgram)],
    contains: &[("\\", StartsProgram), ("program", StartsProgram)],
    flags: "aAbeElnqsStwWxXzH01",
    values: "cdhpUFRTP",
    long_values: &["--command", "--dbname", "--host", "--port", "--username"],
    ..BASE
};

const MYSQL: Table = Table {
    names: &["mysql"],
    long: &[
        ("--pager", StartsProgram),
        ("--tee", Writes),
        ("--plugin-dir", LoadsCode),
        ("--default-auth", LoadsCode),
        ("--defaults-file", LoadsCode),
        ("--defaults-extra-file", LoadsCode),
        ("--system-command", StartsProgram),
    ],
    contains: &[
        ("\\", StartsProgram),
        ("system ", StartsProgram),
        ("source ", LoadsCode),
        ("pager ", StartsProgram),
        ("edit ", StartsProgram),
        ("outfile", Writes),
        ("dumpfile", Writes),
    ],
    flags: "ABbCEfHinNqrsStTvVX",
    values: "eDhPuS",
    long_values: &["--execute", "--database", "--host", "--port", "--user", "--password"],
    ..BASE
};

/// Commands of `sqlite3` itself that only show something; others start programs, load code or write files.
const SHOWING: &[&str] = &[
    ".databases",
    ".dbinfo",
    ".dump",
    ".fullschema",
    ".headers",
    ".indexes",
    ".indices",
    ".mode",
    ".schema",
    ".stats",
    ".tables",
    ".version",
];

/// The place of a command to the client that does more than show something.
fn dot_command(call: Call<'_>) -> Option<usize> {
    call.args.iter().position(|word| {
        exact(word).is_some_and(|text| {
            let command = text.split_whitespace().next().unwrap_or_default();
            text.starts_with('.') && !text.starts_with("./") && !text.starts_with("../") && !SHOWING.contains(&command)
        })
    })
}

/// Without a query in the arguments the client reads its input, where commands to itself may stand.
pub(super) fn client(name: &str, call: Call<'_>) -> Option<Reach> {
    let has = |options: &[&str]| {
        call.args.iter().filter_map(exact).any(|text| {
            options.iter().any(|option| text == *option || text.starts_with(option) && text.as_bytes()[1] != b'-')
        })
    };
    let words = || call.args.iter().filter(|word| exact(word).is_none_or(|text| !text.starts_with('-'))).count();
    let (table, program, has_query): (&Table, &'static str, bool) = match name {
        "sqlite3" | "sqlite" => (&SQLITE, "sqlite3", words() >= 2),
        "duckdb" => (&SQLITE, "duckdb", words() >= 2),
        "psql" => (&PSQL, "psql", has(&["-c", "--command", "-l", "--list"]) || starts(call, "--command=")),
        "mysql" | "mariadb" => (&MYSQL, "mysql", has(&["-e", "--execute"]) || starts(call, "--execute=")),
        _ => return None,
    };
    if let Some(found) = table.check(program, call) {
        return Some(Reach::Farther(found));
    }
    if program != PSQL.names[0]
        && program != MYSQL.names[0]
        && let Some(at) = dot_command(call)
    {
        return Some(farther(StartsProgram, program, "with a command to itself", Some(at)));
    }
    let asks = matches!(call.args, [word] if matches!(exact(word), Some("--version" | "-version" | "-V" | "--help")));
    let is_plain = (has_query || asks) && call.tail == Tail::Closed;
    Some(if is_plain { Reach::Plain } else { farther(InputCode, program, "", None) })
}

fn starts(call: Call<'_>, option: &str) -> bool {
    call.args.iter().filter_map(exact).any(|text| text.starts_with(option))
}

const LOADS: &[(&str, Kind)] =
    &[("--plugin-dir", LoadsCode), ("--default-auth", LoadsCode), ("--defaults-file", LoadsCode)];

pub(super) const TABLES: &[Table] = &[
    Table { names: &["mysqldump", "mysqladmin", "mariadb-dump"], long: LOADS, ..BASE },
    Table { names: &["pg_dump", "pg_restore", "pg_basebackup"], long: &[("--target", StartsProgram)], ..BASE },
];
