//! The `X-SSL…` fields of a client's certificate, with the values of HAProxy.

use rustls_pki_types::pem::PemObject;

use super::*;

/// A certificate made with OpenSSL: several units and names, an attribute without a short name, a serial number whose
/// highest bit is set, a year that takes a GeneralizedTime.
fn shown() -> ClientCertificate {
    let der = CertificateDer::from_pem_slice(include_bytes!("shown.pem")).unwrap();
    ClientCertificate::read(&der).unwrap()
}

#[test]
fn endpoints_get_the_same_fields_as_from_haproxy() {
    let certificate = shown();
    let told = |name: &str| -> Vec<u8> {
        let (_, value) = certificate.headers().iter().find(|(found, _)| found == name).unwrap();
        value.as_bytes().to_vec()
    };
    // Written by a backend of HAProxy 2.6 with the fields of OpenShift's haproxy-config.template.
    let haproxy = include_str!("told-by-haproxy.txt");
    for line in haproxy.lines() {
        let (name, value) = line.split_once(": ").unwrap();
        assert_eq!(String::from_utf8_lossy(&told(name)), value, "{name}");
    }
    assert_eq!(haproxy.lines().count() + 1, certificate.headers().len());
    assert_eq!(STANDARD.decode(told("x-ssl-client-der")).unwrap(), certificate.der());
    assert!(certificate.subject().starts_with("/C=NL/ST=Noord-Holland/L=Zürich/"), "{}", certificate.subject());
}

#[test]
fn whatever_a_subject_holds_makes_one_field() {
    assert_eq!(escape_controls(b"a\r\nX-Admin: 1\t\x7f\xe9"), b"a%0D%0AX-Admin: 1\t%7F\xe9");
    assert_eq!(magnitude(&[0]), [0]);
    assert_eq!(magnitude(&[0, 0x80]), [0x80]);
    assert_eq!(magnitude(&[1, 0]), [1, 0]);
}

#[test]
fn bytes_that_are_no_certificate_are_none() {
    let der = CertificateDer::from_pem_slice(include_bytes!("shown.pem")).unwrap();
    for end in 0..der.len() {
        assert!(ClientCertificate::read(&CertificateDer::from(&der[..end])).is_none(), "{end}");
    }
}
