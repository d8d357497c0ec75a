//! Values as segments; the table of refusals (`parse/tests/refusals.rs`) covers names and counts.

use router_table::policy::header_value::{Converter, Expression, Fetch, ValuePart};

use super::*;

fn value(text: &str) -> HeaderValue {
    HeaderValue::parse(text, MessageDirection::Request).unwrap()
}

#[test]
fn values_are_text_and_expressions() {
    let found = value("a %% %[req.hdr(Host),lower]%{+Q,-X,E}[ssl_c_der,base64,lower] z");
    let host = Expression {
        fetch: Fetch::Header("Host".into()),
        converters: vec![Converter::Lower],
        quoted: false,
        hexadecimal: false,
        escaped: false,
    };
    let certificate = Expression {
        fetch: Fetch::ClientCertificate,
        converters: vec![Converter::Base64, Converter::Lower],
        quoted: true,
        hexadecimal: false,
        escaped: false,
    };
    let expected = [
        ValuePart::Text("a % ".into()),
        ValuePart::Expression(host),
        ValuePart::Expression(certificate),
        ValuePart::Text(" z".into()),
    ];
    assert_eq!(found.segments(), expected);
    assert_eq!(value("%%%%").segments(), [ValuePart::Text("%%".into())]);
}

#[test]
fn every_fault_of_a_value_says_what_to_write() {
    let fault = |text: &str| HeaderValue::parse(text, MessageDirection::Response).unwrap_err();
    assert_eq!(fault("100%"), "'%' begins an expression %[…]; write %% for a percent sign");
    assert_eq!(fault("%[res.hdr(Host)"), "the '[' after '%' has no ']'; close the expression");
    assert_eq!(fault("%{+Q[ssl_c_der]"), "the '{' after '%' has no '}'; write for example %{+Q}[…]");
    assert_eq!(fault("%{+Z}[ssl_c_der]"), "\"+Z\" is not a valid flag; write +Q, +X or +E");
    assert_eq!(fault("%[ssl_c_der,hex]"), "\"hex\" is not a valid converter; write lower or base64");
    assert_eq!(fault("%[req.hdr(a)]"), "\"req.hdr(a)\" cannot be looked up here; write res.hdr(Name) or ssl_c_der");
    assert_eq!(fault("%[res.hdr(a b)]"), "\"a b\" is not a valid header name; use letters, digits and '-'");
    assert_eq!(fault("a\r\nb"), "has a control character, such as a line break; remove it");
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(
        text in r"(%|%%|\{\+Q\}|\[|\]|\(|\)|,|req\.hdr|res\.hdr|ssl_c_der|lower|base64|Host|[ -~]|\PC){0,24}",
    ) {
        for direction in [MessageDirection::Request, MessageDirection::Response] {
            let Ok(value) = HeaderValue::parse(&text, direction) else { continue };
            // Written back in its shortest form, the value is the same.
            let written: String = value.segments().iter().map(|segment| written(segment, direction)).collect();
            proptest::prop_assert_eq!(HeaderValue::parse(&written, direction), Ok(value));
        }
    }
}

fn written(segment: &ValuePart, direction: MessageDirection) -> String {
    let expression = match segment {
        ValuePart::Text(text) => return text.replace('%', "%%"),
        ValuePart::Expression(expression) => expression,
    };
    let flags = [(expression.quoted, "+Q"), (expression.hexadecimal, "+X"), (expression.escaped, "+E")];
    let flags: Vec<&str> = flags.into_iter().filter(|(set, _)| *set).map(|(_, flag)| flag).collect();
    let flags = if flags.is_empty() { String::new() } else { format!("{{{}}}", flags.join(",")) };
    let fetch = match &expression.fetch {
        Fetch::Header(name) => format!("{}({name})", direction.fetcher()),
        Fetch::ClientCertificate => "ssl_c_der".to_owned(),
    };
    let converters = expression.converters.iter().map(|converter| match converter {
        Converter::Lower => ",lower",
        Converter::Base64 => ",base64",
    });
    format!("%{flags}[{fetch}{}]", converters.collect::<String>())
}
