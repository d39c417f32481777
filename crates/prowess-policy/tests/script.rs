//! What does a command text say? Tables of tricky commands, the peer's own cases, properties, and bash as a witness.

#[path = "script/properties.rs"]
mod properties;

use prowess_policy::script::{
    Expansion, Joint, MAX_BYTES, MAX_DEPTH, RedirectKind, Script, Segment, Value, Word, quote,
};
use prowess_testkit::{assert_documented, cases, check_all_but};
use serde_json::Value as Json;

/// A script in one line: segments with what joins them, then doubts behind `?`.
///
/// Literal words are quoted as Rust does, dynamic ones are `<prefix|Expansions>` with a `*` if they may split. A nested
/// segment is in brackets. Redirections come behind the words, whatever their place.
fn outline(text: &str) -> String {
    let script = Script::parse(text);
    let segments = script.segments.iter().map(segment_outline).collect::<Vec<_>>().join(" ");
    let mut kinds: Vec<String> = script.doubts.iter().map(|doubt| format!("{:?}", doubt.kind)).collect();
    kinds.dedup();
    let doubts = if kinds.is_empty() { String::new() } else { format!("? {}", kinds.join(" ")) };
    [segments, doubts].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn segment_outline(segment: &Segment) -> String {
    let joint = match segment.joint {
        Joint::First => "",
        Joint::Pipe => "| ",
        Joint::PipeBoth => "|& ",
        Joint::And => "&& ",
        Joint::Or => "|| ",
        Joint::Then => "; ",
        Joint::Background => "& ",
    };
    let assignments = segment.assignments.iter().map(|part| format!("{}={}", part.name, word_outline(&part.value)));
    let words = segment.words.iter().map(word_outline);
    let redirects = segment.redirects.iter().map(|redirect| {
        let number = redirect.descriptor.map(|number| number.to_string()).unwrap_or_default();
        let sign = match redirect.kind {
            RedirectKind::Read => "read",
            RedirectKind::Write => "write",
            RedirectKind::Duplicate => "dup",
            RedirectKind::HereDocument => "here",
            RedirectKind::HereString => "string",
        };
        format!("{number}{sign}:{}", word_outline(&redirect.target))
    });
    let parts = assignments.chain(words).chain(redirects).collect::<Vec<_>>().join(" ");
    if segment.nested { format!("{joint}[{parts}]") } else { format!("{joint}{parts}") }
}

fn word_outline(word: &Word) -> String {
    match &word.value {
        Value::Literal(text) => format!("{text:?}"),
        Value::Dynamic { prefix, expansions, splits } => {
            let expansions = expansions.iter().map(|it| format!("{it:?}")).collect::<Vec<_>>().join("+");
            format!("<{prefix}|{expansions}>{}", if *splits { "*" } else { "" })
        }
    }
}

#[track_caller]
fn check(table: &[(&str, &str)]) {
    let wrong: Vec<_> = table
        .iter()
        .map(|(text, expected)| (text, outline(text), expected))
        .filter(|(_, found, expected)| found != *expected)
        .map(|(text, found, expected)| format!("{text:?}\n  is       {found}\n  not      {expected}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn quotes_are_removed_as_bash_does() {
    check(&[
        (r#"r"g" x"#, r#""rg" "x""#),
        (r"r\g x", r#""rg" "x""#),
        (r"$'\x69\x64'", r#""id""#),
        (r"ls; $'\x69\x64'", r#""ls" ; "id""#),
        (r"$'\151\144' -u", r#""id" "-u""#),
        (r#""r"'g' 'a'"b"c"#, r#""rg" "abc""#),
        (r#"'/usr/bin'/"id""#, r#""/usr/bin/id""#),
        (r#"echo 'a'\''b' "it's" 'say "hi"'"#, r#""echo" "a'b" "it's" "say \"hi\"""#),
        (r#"echo "a\$b \`c\` \"d\" \\e \f""#, r#""echo" "a$b `c` \"d\" \\e \\f""#),
        (r#"echo \$HOME \`id\` \"x\" \\"#, r#""echo" "$HOME" "`id`" "\"x\"" "\\""#),
        (r#"echo '' "" ''"""#, r#""echo" "" "" """#),
        ("'' x", r#""" "x""#),
        (r#"echo a""b''c"#, r#""echo" "abc""#),
        (r#"echo "$'a'" '$'"x""#, r#""echo" "$'a'" "$x""#),
        (r"echo $'a\'b' $'tab\there' $'\u0041'", r#""echo" "a'b" "tab\there" "A""#),
        (r"echo $'\0a' x", r#""echo" <|> "x" ? Unusual"#),
        (r"echo $'\xff'", r#""echo" <|> ? Unusual"#),
        (r"echo $'\u00e9'", r#""echo" <|> ? Unusual"#),
        (r#"echo $"hello""#, r#""echo" "hello" ? Unusual"#),
        (r#"echo "$" $ a$ "$ ""#, r#""echo" "$" "$" "a$" "$ ""#),
        (r#"echo 'literal $(id)' "\$(id)""#, r#""echo" "literal $(id)" "$(id)""#),
        (r##"echo "#x" a#b '#' \#c"##, r##""echo" "#x" "a#b" "#" "#c""##),
        (r#"echo {} {a} '{a,b}' \{a,b} "{1..3}" a,b"#, r#""echo" "{}" "{a}" "{a,b}" "{a,b}" "{1..3}" "a,b""#),
        (r#"echo hi! !! "!x" ^a^b"#, r#""echo" "hi!" "!!" "!x" "^a^b""#),
        (r#"echo -e "a\tb\n""#, r#""echo" "-e" "a\\tb\\n""#),
        (
            "echo 100% @x user@host:path a+b=c -x=y --z=~/w",
            r#""echo" "100%" "@x" "user@host:path" "a+b=c" "-x=y" "--z=~/w""#,
        ),
        (r"find . -exec rg x {} \;", r#""find" "." "-exec" "rg" "x" "{}" ";""#),
        (r"find . \( -name a -o -name b \)", r#""find" "." "(" "-name" "a" "-o" "-name" "b" ")""#),
        (r#""./rel tool/tool x" y"#, r#""./rel tool/tool x" "y""#),
        (r#"rg "héllo wörld" 漢字 🦀"#, r#""rg" "héllo wörld" "漢字" "🦀""#),
        ("ünï x", r#""ünï" "x""#),
    ]);
}

#[test]
fn expansions_are_named() {
    check(&[
        (r#"echo $HOME ${HOME} "$HOME" "${HOME}""#, r#""echo" <|Variable>* <|Variable>* <|Variable> <|Variable>"#),
        (
            r#"echo $1 $@ "$@" "$*" $? $$ $# $! $- "${@}""#,
            r#""echo" <|Variable>* <|Variable>* <|Variable>* <|Variable> <|Variable>* <|Variable>* <|Variable>* <|Variable>* <|Variable>* <|Variable>*"#,
        ),
        (r#"echo a$x "b c"$y'd' -o"$z""#, r#""echo" <a|Variable>* <b c|Variable>* <-o|Variable>"#),
        ("echo $a/$b-c:$d", r#""echo" <|Variable>*"#),
        (
            r#"echo ${x:-y} "${x%.*}" ${!x} ${#x} "${a[@]}" ${x//a/b}"#,
            r#""echo" <|Parameter>* <|Parameter> <|Parameter>* <|Parameter>* <|Parameter>* <|Parameter>*"#,
        ),
        ("echo ${x:-$(id)}", r#""echo" <|Parameter+Substitution>* ["id"] ? Substitution"#),
        (r#"echo "${x:-$(id)}""#, r#""echo" <|Parameter+Substitution> ["id"] ? Substitution"#),
        ("echo ${x:-`id`}", r#""echo" <|Parameter+Substitution>* ? Substitution"#),
        (r#"echo "${x:-'}'}""#, r#""echo" <|Parameter> ? Unusual"#),
        (r#"echo $((1 + 2)) "$((x))" $(( (1) + 2 ))"#, r#""echo" <|Arithmetic>* <|Arithmetic> <|Arithmetic>*"#),
        ("echo $[1+2]", r#""echo" <|Arithmetic>* ? Unusual"#),
        ("ls *.txt a?b [abc] src/*.rs a[0]", r#""ls" <|Glob>* <a|Glob>* <|Glob>* <src/|Glob>* <a|Glob>*"#),
        (r#"ls \*.txt '*'.txt "a?b" [ a]"#, r#""ls" "*.txt" "*.txt" "a?b" "[" "a]""#),
        ("mkdir -p a/{b,c} x{1..3} {a,b", r#""mkdir" "-p" <a/|Brace>* <x|Brace>* "{a,b""#),
        (r#"cp a{,.bak} "$x"{a,b}"#, r#""cp" <a|Brace>* <|Variable+Brace>*"#),
        (r#"cat ~/x ~root ~ a~ "~/x" \~ ~/*.c"#, r#""cat" <|Tilde> <|Tilde> <|Tilde> "a~" "~/x" "~" <|Tilde+Glob>*"#),
        ("dd if=~/x of=a:~/y --out=~/z", r#""dd" <if=|Tilde> <of=a:|Tilde> "--out=~/z""#),
        ("$cmd x", r#"<|Variable>* "x""#),
        (r#""$cmd" x"#, r#"<|Variable> "x""#),
        ("~/bin/x y", r#"<|Tilde> "y""#),
        (r#"echo $x* "$x"*"#, r#""echo" <|Variable+Glob>* <|Variable+Glob>*"#),
        ("[ -f x ] && cat x", r#""[" "-f" "x" "]" && "cat" "x""#),
        (r#"[ "$x" = y -o ! -e z ]"#, r#""[" <|Variable> "=" "y" "-o" "!" "-e" "z" "]""#),
        (r#"test "$a" \< b"#, r#""test" <|Variable> "<" "b""#),
    ]);
}

#[test]
fn substitutions_are_doubts_and_their_commands_are_listed() {
    check(&[
        ("echo `id`", r#""echo" <|Substitution>* ["id"] ? Substitution"#),
        (r#"echo "`id`""#, r#""echo" <|Substitution> ["id"] ? Substitution"#),
        (r#"echo "$(id)""#, r#""echo" <|Substitution> ["id"] ? Substitution"#),
        (r#"echo "a$(id)b" c"#, r#""echo" <a|Substitution> "c" ["id"] ? Substitution"#),
        (
            r#"echo $(echo "$(id -u)" ')')"#,
            r#""echo" <|Substitution>* ["echo" <|Substitution> ")"] ["id" "-u"] ? Substitution"#,
        ),
        (r#"echo "$(case x in a) b;; esac)" y"#, r#""echo" <|Substitution> "y" ["b"] ? Substitution Compound"#),
        (r#"echo "$(echo "a b" 'c)')" z"#, r#""echo" <|Substitution> "z" ["echo" "a b" "c)"] ? Substitution"#),
        ("echo $( (id) ) $(( 1 ))", r#""echo" <|Substitution>* <|Arithmetic>* ["id"] ? Substitution Subshell"#),
        ("$(echo rm) x", r#"<|Substitution>* "x" ["echo" "rm"] ? Substitution"#),
        ("x=$(id) ls", r#"x=<|Substitution> "ls" ["id"] ? Substitution"#),
        ("ls <(id) >(cat)", r#""ls" <|Process> <|Process> ["id"] ["cat"] ? ProcessSubstitution"#),
        ("ls $(ls $(ls))", r#""ls" <|Substitution>* ["ls" <|Substitution>*] ["ls"] ? Substitution"#),
        (r#"cat <<<"$(id)""#, r#""cat" string:<|Substitution> ["id"] ? HereString Substitution"#),
    ]);
}

#[test]
fn lists_and_pipelines_are_flat() {
    check(&[
        (
            "rg x && git log | head -n 3 || echo none; ls",
            r#""rg" "x" && "git" "log" | "head" "-n" "3" || "echo" "none" ; "ls""#,
        ),
        ("a&&b||c;d|e", r#""a" && "b" || "c" ; "d" | "e""#),
        ("a |& b", r#""a" |& "b""#),
        ("rg x&", r#""rg" "x" ? Background"#),
        ("rg x & git y", r#""rg" "x" & "git" "y" ? Background"#),
        ("a=b;c=d", r#"a="b" ; c="d""#),
        ("ls;", r#""ls""#),
        ("ls ;; id", r#""ls" ; "id" ? Syntax"#),
        (";", "? Syntax"),
        ("&", "? Syntax"),
        ("rg x | | head", "? Syntax"),
        ("rg x |", "? Syntax"),
        ("| rg x", "? Syntax"),
        ("rg x &&", "? Syntax"),
        ("&& rg x", "? Syntax"),
        ("rg x;; ls", r#""rg" "x" ; "ls" ? Syntax"#),
        ("! grep -q x f && ls", r#""grep" "-q" "x" "f" && "ls""#),
        ("! a | b", r#""a" | "b""#),
        ("time rg x", r#""time" "rg" "x""#),
        ("time -p rg x | head", r#""time" "-p" "rg" "x" | "head""#),
        ("time", r#""time""#),
        ("time ! rg", r#""time" "!" "rg" ? Unusual"#),
        ("time coproc x", r#""time" "coproc" "x" ? Coprocess"#),
        (r"\time rg", r#""time" "rg""#),
        ("'time' -f %e rg", r#""time" "-f" "%e" "rg""#),
    ]);
}

#[test]
fn assignments_stand_before_the_program() {
    check(&[
        (r#"FOO=1 BAR="a b" rg x"#, r#"FOO="1" BAR="a b" "rg" "x""#),
        ("PATH=/tmp rg x", r#"PATH="/tmp" "rg" "x""#),
        ("A=* B={a,b} C=~/x:~ D=$x E=", r#"A="*" B="{a,b}" C=<|Tilde> D=<|Variable> E="""#),
        ("a=1 b=2", r#"a="1" b="2""#),
        ("env FOO=bar rg x", r#""env" "FOO=bar" "rg" "x""#),
        (r#"export X=1 Y="$y"; rg x"#, r#""export" "X=1" <Y=|Variable> ; "rg" "x""#),
        ("declare -x A=1", r#""declare" "-x" "A=1""#),
        ("unset FOO", r#""unset" "FOO""#),
        (r#""A"=1 x"#, r#""A=1" "x""#),
        ("1A=2 x", r#""1A=2" "x""#),
        ("a+=1", r#"a="1" ? Unusual"#),
        ("a[0]=1 x", r#"a[0]="1" "x" ? Unusual"#),
        ("a[$(id)]=1 x", r#"a[$(id)]="1" "x" ["id"] ? Unusual Substitution"#),
        ("a=(x y)", "a=<|>* ? Unusual"),
        (">o b[ ; id ]", "? Syntax"),
        (">o=2>&1 b[x y; id", r#""b[x" "y" write:"o=2" dup:"1" ; "id" ? Disagreement"#),
        ("A=1 a[x y ]=1 id", "? Syntax"),
        ("export a[ ; id ]=1", "? Syntax"),
        ("export a=(x)", r#""export" <|>* ? Disagreement"#),
        ("echo a[ b ]", r#""echo" "a[" "b" "]""#),
        ("A=1 if", r#"A="1" "if" ? Compound"#),
    ]);
}

#[test]
fn redirections_belong_to_their_command() {
    check(&[
        ("cat < in.txt", r#""cat" read:"in.txt""#),
        ("rg x 2>/dev/null", r#""rg" "x" 2write:"/dev/null""#),
        ("ls > /home/victim/.bashrc", r#""ls" write:"/home/victim/.bashrc""#),
        (">out rg x", r#""rg" "x" write:"out""#),
        (">out FOO=1 rg x", r#"FOO="1" "rg" "x" write:"out""#),
        ("2>&1 1>/dev/null rg", r#""rg" 2dup:"1" 1write:"/dev/null""#),
        ("rg x >out y 2>&1", r#""rg" "x" "y" write:"out" 2dup:"1""#),
        ("cmd >> log 2>&1 </dev/null", r#""cmd" write:"log" 2dup:"1" read:"/dev/null""#),
        ("cmd &> f", r#""cmd" write:"f""#),
        ("cmd &>> f", r#""cmd" write:"f""#),
        ("cmd >& f", r#""cmd" write:"f""#),
        ("cmd >| f", r#""cmd" write:"f""#),
        ("cmd >&2 2>&-", r#""cmd" dup:"2" 2dup:"-""#),
        ("cmd <&3", r#""cmd" dup:"3""#),
        ("cmd >&-x", r#""cmd" write:"-x" ? Unusual"#),
        ("cmd >&2-", r#""cmd" write:"2-" ? Unusual"#),
        ("cmd 2>&f", r#""cmd" 2write:"f" ? Unusual"#),
        ("cmd <&f", r#""cmd" write:"f" ? Unusual"#),
        ("ls {fd}>x", r#""ls" "{fd}" write:"x" ? Unusual"#),
        ("ls <>x", "? Syntax"),
        ("ls 99999999999>x", r#""ls" write:"x" ? Unusual"#),
        ("a>b>c d", r#""a" "d" write:"b" write:"c""#),
        ("a b2>c 2 >d", r#""a" "b2" "2" write:"c" write:"d""#),
        ("a >1>b", r#""a" write:"1" write:"b" ? Disagreement"#),
        ("> x", r#"write:"x""#),
        ("ls > $f", r#""ls" write:<|Variable>*"#),
        (r#"ls >"a b" >*.txt"#, r#""ls" write:"a b" write:<|Glob>*"#),
    ]);
}

#[test]
fn compound_commands_are_doubts_and_reserved_words_no_programs() {
    check(&[
        ("(rg x)", r#"["rg" "x"] ? Subshell"#),
        ("( ( rm x ) )", r#"["rm" "x"] ? Subshell"#),
        ("((1+2))", "? Compound"),
        ("{ rg x; }", r#"["rg" "x"] ? Group"#),
        ("{ id; } > f", r#"["id"] write:"f" ? Group"#),
        ("if ls; then id; fi", r#"["ls"] ; ["id"] ? Compound"#),
        ("for i in a b; do echo $i; done", r#"; ["echo" <|Variable>*] ? Compound"#),
        ("for ((i=0;i<3;i++)); do id; done", r#"[i="0"] ; ["id"] ? Compound"#),
        ("while a; do b; done", r#"["a"] ; ["b"] ? Compound"#),
        ("until a; do b; done", r#"["a"] ; ["b"] ? Compound"#),
        ("case x in a) id;; *) ls;; esac", r#"["id"] ; ["ls"] ? Compound"#),
        ("select x in a; do id; done", r#"; ["id"] ? Compound"#),
        ("[[ -f x && $(id) ]]", r#"["id"] ? Compound Substitution"#),
        ("x() { id; }", r#"["id"] ? Function Group"#),
        ("ls(){ id; }; ls", r#"["id"] ; "ls" ? Function Group"#),
        ("function f { id; }", r#"["id"] ? Function Group"#),
        ("f() (id)", r#"["id"] ? Function Subshell"#),
        ("coproc id", r#""coproc" "id" ? Coprocess"#),
        ("coproc x { id; }", r#""coproc" "x" "{" "id" ; "}" ? Coprocess Group"#),
        ("if", "? Syntax"),
        ("then x", r#""then" "x" ? Compound"#),
        ("do", r#""do" ? Compound"#),
        ("done", r#""done" ? Compound"#),
        ("}", r#""}" ? Group"#),
        ("echo if then do done { esac in", r#""echo" "if" "then" "do" "done" "{" "esac" "in""#),
        ("echo @(a|b)", "? Syntax"),
        ("echo !(a)", "? Syntax"),
        ("foo (bar)", r#""foo" ["bar"] ? Syntax"#),
    ]);
}

#[test]
fn lines_comments_here_documents_and_odd_characters() {
    check(&[
        ("cat <<EOF\nhello\nEOF", r#""cat" here:"EOF" ? HereDocument"#),
        ("cat <<'EOF'\n$(id); 'x\nEOF", r#""cat" here:"EOF" ? HereDocument"#),
        ("cat <<EOF\na; $(id) 'b\nEOF\nls", r#""cat" here:"EOF" ["id"] ; "ls" ? HereDocument Substitution"#),
        ("cat <<EOF | wc -l > x\n$HOME\nEOF", r#""cat" here:"EOF" | "wc" "-l" write:"x" ? HereDocument"#),
        ("cat <<-EOF\n\thi\n\tEOF", r#""cat" here:"EOF" ? HereDocument"#),
        ("cat <<E >f arg && ls\nE", r#""cat" "arg" here:"E" write:"f" && "ls" ? HereDocument"#),
        ("cat <<EOF\nhello", "? Syntax"),
        ("cat <<EOF\nit's \"\nEOF\nrg x", r#""cat" here:"EOF" ; "rg" "x" ? HereDocument"#),
        ("echo \"a\nb\" 'c\nd'", r#""echo" "a\nb" "c\nd""#),
        ("a\nb\n\n# c\nd # e\n", r#""a" ; "b" ; "d""#),
        ("  # c\n  ls # d\n# e", r#""ls""#),
        ("a &&\n\n# c\nb |\nc", r#""a" && "b" | "c""#),
        ("ls\n>x", r#""ls" ; write:"x""#),
        ("a;\nb;\n", r#""a" ; "b""#),
        ("ls # \\\n; id", "? Continuation Syntax"),
        ("rg \\\n x", r#""rg" "x" ? Continuation"#),
        ("echo 'a\\\nb'", r#""echo" "a\\\nb" ? Continuation"#),
        ("r\\\ng x", r#"<|>* "g" "x" ? Disagreement Continuation"#),
        ("ls #' \nid #'", r#""ls" ; "id""#),
        ("echo a\t b\t", r#""echo" "a" "b""#),
        ("ls\r\nid", r#"<|>* ; "id" ? Disagreement Control"#),
        ("rg x\rgit", r#""rg" <|>* "git" ? Disagreement Control"#),
        ("rg\u{a0}x", r#""rg\u{a0}x" ? Invisible"#),
        ("rg\u{200b} x", r#""rg\u{200b}" "x" ? Invisible"#),
        ("echo \u{202e}hi", r#""echo" "\u{202e}hi" ? Invisible"#),
        ("echo '\u{2028}'", r#""echo" "\u{2028}" ? Invisible"#),
        ("echo a\u{0}b", "? Nul"),
        ("echo '\u{1b}[2K'", r#""echo" "\u{1b}[2K" ? Control"#),
        ("", "? Empty"),
        ("   ", "? Empty"),
        ("\n\t\n", "? Empty"),
        ("# rg", "? Empty"),
        ("echo 'abc", "? Syntax"),
        (r#"echo "abc"#, "? Syntax"),
        (r"echo abc\", "? Syntax"),
        ("echo `id", "? Syntax"),
        ("echo $(id", "? Syntax"),
        ("echo ${x", "? Syntax"),
        ("(ls", "? Syntax"),
        ("ls)", "? Syntax"),
        (r"echo a \ b", r#""echo" "a" "b" ? Disagreement"#),
    ]);
}

#[test]
fn texts_that_take_parsers_long_are_not_parsed() {
    let deep = format!("ls {}", "(".repeat(400));
    assert_eq!(outline(&deep), "? TooDeep");
    assert_eq!(outline(&format!("git status {}", "A".repeat(200_000))), "? TooLong");
    assert_eq!(outline(&"a|".repeat(1000)), "? TooLong");
    assert_eq!(outline(&"a ".repeat(MAX_BYTES / 2)), "? TooLong");
    // These are seen to be wrong early; looking for the least error in them would take seconds.
    for piece in ["12) ", ")", ";;", "<", ">", "'<<a ", "é)"] {
        assert_eq!(outline(&piece.repeat(250 * 16 / piece.len())), "? Syntax", "{piece}");
    }
    for piece in ["x()", "a=(", "${x#", "<<a\n", "$((", "`a` ", "time coproc ", "\"$(", "[[ ", "case x in x) "] {
        assert!(!Script::parse(&piece.repeat(MAX_BYTES / piece.len())).doubts.is_empty(), "{piece}");
    }
    // One long word is no trouble.
    assert_eq!(Script::parse(&format!("echo '{}'", "a b".repeat(10_000))).doubts, []);
}

#[test]
fn closing_brackets_in_quotes_do_not_hide_depth() {
    let mut text = "echo ".to_owned();
    for _ in 0..2000 {
        text.push_str("\"${x:-'}'");
    }
    assert!(!Script::parse(&text).doubts.is_empty());
    assert!(!Script::parse(&"( ')' ".repeat(MAX_DEPTH * 50)).doubts.is_empty());
}

#[test]
fn spans_show_the_text() {
    let text = "A=1 rg \"é\" >o | wc -l; echo $(id)";
    let script = Script::parse(text);
    let at = |span: prowess_policy::script::Span| &text[span.range()];
    let spans: Vec<&str> = script.segments.iter().map(|segment| at(segment.span)).collect();
    assert_eq!(spans, ["A=1 rg \"é\"", "wc -l", "echo $(id)", "id"]);
    let first = &script.segments[0];
    assert_eq!(at(first.assignments[0].span), "A=1");
    assert_eq!(at(first.assignments[0].value.span), "1");
    assert_eq!(at(first.words[1].span), "\"é\"");
    assert_eq!(at(first.redirects[0].span), ">o");
    assert_eq!(at(first.redirects[0].target.span), "o");
    assert_eq!(script.doubts.iter().map(|doubt| at(doubt.span)).collect::<Vec<_>>(), ["$(id)"]);
}

/// Where we read a text otherwise than the peer.
const DEVIATIONS: &[(&str, &str)] = &[
    ("pipe-empty", "an empty place between two operators"),
    ("pipe-lead", "an empty place between two operators"),
    ("ansi-c", "`$'…'`"),
    ("redir-in", "redirections"),
    ("redir-null", "redirections"),
    ("dq-newline", "line breaks in double quotes"),
    ("group", "groups, loops and coprocesses"),
    ("coproc", "groups, loops and coprocesses"),
    ("for", "groups, loops and coprocesses"),
    ("linecont", "a backslash at the end of a line"),
    ("heredoc", "here-documents"),
    ("heredoc-q", "here-documents"),
    ("heredoc-var", "here-documents"),
    ("heredoc-dash", "here-documents"),
    ("heredoc-quote-body", "here-documents"),
    ("comment-only", "comments"),
    ("envprefix-path", "assignments before a program"),
    ("nbsp", "characters that cannot be seen"),
    ("zero-width", "characters that cannot be seen"),
    ("rtl", "characters that cannot be seen"),
];

#[test]
fn the_peer_reads_the_same_words() {
    assert_documented(DEVIATIONS);
    check_all_but(DEVIATIONS, cases(include_str!("golden/script.json")), |case| {
        let text = case["command"].as_str().ok_or("no command")?;
        let script = Script::parse(text);
        let words = |segment: &Segment| -> Json {
            let text = |word: &Word| match &word.value {
                Value::Literal(text) => text.clone(),
                Value::Dynamic { .. } => text[word.span.range()].to_owned(),
            };
            segment.words.iter().map(text).collect()
        };
        let found = if script.doubts.is_empty() { script.segments.iter().map(words).collect() } else { Json::Null };
        if found == case["argv"] { Ok(()) } else { Err(format!("{found} is not {}", case["argv"])) }
    });
}

#[test]
fn expansions_of_a_word_are_listed_once_and_in_order() {
    let script = Script::parse("echo a~$x*\"$y\"{b,c}?");
    let Value::Dynamic { prefix, expansions, splits } = &script.segments[0].words[1].value else { panic!("dynamic") };
    assert_eq!((prefix.as_str(), *splits), ("a~", true));
    assert_eq!(expansions, &[Expansion::Variable, Expansion::Glob, Expansion::Brace]);
}

#[test]
fn letters_behind_a_brace_do_not_upset_the_lexer() {
    for text in ["echo {\u{e018c}", "echo {1\u{1f980}", "echo {1..\u{1f980}}", "{é", "echo a{🦀,b}"] {
        assert!(!Script::parse(text).doubts.is_empty(), "{text}");
    }
    assert!(Script::parse("echo {a,é} é{1..2} '{'").doubts.is_empty());
}

#[test]
fn quoting_is_minimal_and_safe() {
    let table = [
        ("rg", "rg"),
        ("/usr/bin/a-b_c.d", "/usr/bin/a-b_c.d"),
        ("--x=y", "--x=y"),
        ("user@host:a,b+c%d", "user@host:a,b+c%d"),
        ("", "''"),
        ("a b", "'a b'"),
        ("it's", r"'it'\''s'"),
        ("~", "'~'"),
        ("=x", "'=x'"),
        ("A=1", "'A=1'"),
        ("time", "'time'"),
        ("if", "'if'"),
        ("$x*", "'$x*'"),
        ("é", "'é'"),
        ("a\\\nb", "'a\\''\nb'"),
    ];
    for (word, expected) in table {
        assert_eq!(quote(word), expected);
    }
}
