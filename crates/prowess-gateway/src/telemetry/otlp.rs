//! OTLP: how are spans written for a collector?

use serde_json::{Value, json};

use super::{Attribute, Kind, Span};

/// The request body for these spans.
pub(super) fn body(service: &str, spans: &[Span]) -> Value {
    json!({
        "resourceSpans": [{
            "resource": {"attributes": [attribute("service.name", &Attribute::Text(service.to_owned()))]},
            "scopeSpans": [{
                "scope": {"name": "prowess", "version": env!("CARGO_PKG_VERSION")},
                "spans": spans.iter().map(span).collect::<Vec<_>>(),
            }],
        }],
    })
}

fn span(span: &Span) -> Value {
    json!({
        "traceId": format!("{:032x}", span.trace.id),
        "spanId": format!("{:016x}", span.trace.span),
        "name": span.name,
        "kind": kind(span.kind),
        // Numbers of 64 bits are texts in this form.
        "startTimeUnixNano": span.began.to_string(),
        "endTimeUnixNano": span.ended.to_string(),
        "attributes": span.attributes.iter().map(|(name, value)| attribute(name, value)).collect::<Vec<_>>(),
        "status": status(span.error.as_deref()),
    })
}

fn kind(kind: Kind) -> u8 {
    match kind {
        Kind::Internal => 1,
        Kind::Server => 2,
    }
}

fn status(error: Option<&str>) -> Value {
    match error {
        None => json!({"code": 1}),
        Some(why) => json!({"code": 2, "message": why}),
    }
}

fn attribute(name: &str, value: &Attribute) -> Value {
    let value = match value {
        Attribute::Text(text) => json!({"stringValue": text}),
        Attribute::Number(number) => json!({"intValue": number.to_string()}),
    };
    json!({"key": name, "value": value})
}

#[cfg(test)]
mod tests {
    use super::super::Trace;
    use super::*;

    #[test]
    fn a_span_is_written_as_collectors_read_it() {
        let one = Span {
            trace: Trace { id: 0xabc, span: 0x12 },
            name: "rpc",
            kind: Kind::Server,
            began: 1_794_808_640_888_000_000,
            ended: 1_794_808_640_889_000_000,
            attributes: vec![("rpc.method", "health".into()), ("tokens", 7.into())],
            error: Some("refused".to_owned()),
        };
        let body = body("prowess", &[one]);
        let resource = &body["resourceSpans"][0];
        assert_eq!(
            resource["resource"]["attributes"],
            json!([{"key": "service.name", "value": {"stringValue": "prowess"}}])
        );
        assert_eq!(
            resource["scopeSpans"][0]["spans"][0],
            json!({
                "traceId": "00000000000000000000000000000abc",
                "spanId": "0000000000000012",
                "name": "rpc",
                "kind": 2,
                "startTimeUnixNano": "1794808640888000000",
                "endTimeUnixNano": "1794808640889000000",
                "attributes": [
                    {"key": "rpc.method", "value": {"stringValue": "health"}},
                    {"key": "tokens", "value": {"intValue": "7"}},
                ],
                "status": {"code": 2, "message": "refused"},
            })
        );
    }
}
