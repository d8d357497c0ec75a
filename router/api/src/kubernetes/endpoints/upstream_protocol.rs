//! Contour's annotations of Services: `projectcontour.io/upstream-protocol.{h2c,h2,tls}` and the same names below
//! `contour.heptio.com`, each with a list of ports (Contour, "Annotations Reference").

use crate::meta::Annotations;

const PROTOCOLS: [&str; 3] = ["h2c", "h2", "tls"];
const GROUPS: [&str; 2] = ["projectcontour.io", "contour.heptio.com"];

/// The protocol of each annotated port, in order of precedence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamProtocols(Box<[(&'static str, Box<str>)]>);

impl UpstreamProtocols {
    /// Parses the annotations of a Service; `None` if they name no port.
    pub(crate) fn parse(annotations: &Annotations) -> Option<Box<Self>> {
        let mut ports = Vec::new();
        for protocol in PROTOCOLS {
            let lists = GROUPS.map(|group| annotations.get(&format!("{group}/upstream-protocol.{protocol}")));
            let names = lists.into_iter().flatten().flat_map(|list| list.split(',')).map(str::trim);
            ports.extend(names.filter(|name| !name.is_empty()).map(|name| (protocol, name.into())));
        }
        (!ports.is_empty()).then(|| Box::new(UpstreamProtocols(ports.into())))
    }

    /// `h2c`, `h2` or `tls`: the protocol of a port, by its number or its name.
    pub fn of(&self, name: &str, number: u16) -> Option<&'static str> {
        let number = number.to_string();
        self.0.iter().find(|(_, port)| **port == *number || **port == *name).map(|(protocol, _)| *protocol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_found_by_number_or_name_and_h2c_comes_first() {
        let annotations: Annotations = [
            ("projectcontour.io/upstream-protocol.tls", "443, web"),
            ("contour.heptio.com/upstream-protocol.tls", "8443"),
            ("projectcontour.io/upstream-protocol.h2", "web ,,9"),
            ("contour.heptio.com/upstream-protocol.h2c", "9"),
            ("example.test/upstream-protocol.h2c", "443"),
        ]
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .into();
        let protocols = UpstreamProtocols::parse(&annotations).unwrap();
        let cases = [
            ("", 443, Some("tls")),
            ("web", 80, Some("h2")),
            ("other", 8443, Some("tls")),
            ("", 9, Some("h2c")),
            ("", 80, None),
            ("we", 44, None),
        ];
        for (name, number, protocol) in cases {
            assert_eq!(protocols.of(name, number), protocol, "{name:?} {number}");
        }
        for text in ["", " , "] {
            let annotations = [("projectcontour.io/upstream-protocol.tls".to_owned(), text.to_owned())].into();
            assert_eq!(UpstreamProtocols::parse(&annotations), None, "{text:?}");
        }
    }
}
