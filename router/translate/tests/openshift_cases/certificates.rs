//! Certificates, checked as OpenShift's router does. The cases name their materials; equivalents are generated here.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, PKCS_RSA_SHA256};
use serde_json::{Value, json};

use crate::differ;
use crate::world::{Verdict, World, manifest};

/// Equivalents of upstream's constants, by their names.
pub struct Materials(BTreeMap<&'static str, String>);

type Ca = CertifiedIssuer<'static, KeyPair>;

impl Materials {
    /// All materials, generated once.
    pub fn get() -> &'static Self {
        static MATERIALS: OnceLock<Materials> = OnceLock::new();
        MATERIALS.get_or_init(Self::new)
    }

    fn new() -> Self {
        let mut made = Materials(BTreeMap::new());
        let root = ca("root", None);
        let leaf = leaf_of(&root, |_| {});
        made.put("testCACertificate", root.pem());
        made.put("testDestinationCACertificate", root.pem());
        made.pair("testCertificate", "testPrivateKey", leaf);
        let expired = leaf_of(&root, expire);
        made.put("testExpiredCertNoKey", expired.0.clone());
        made.put("testExpiredCertCA", root.pem());
        made.pair("testExpiredCert", "testExpiredCertKey", expired);
        made.pair("testSelfSignedCert", "testSelfSignedKey", self_signed(|_| {}));
        let future = self_signed(|params| {
            params.not_before = rcgen::date_time_ymd(2038, 1, 1);
            params.not_after = rcgen::date_time_ymd(2039, 1, 1);
        });
        made.pair("testValidInFutureCert", "testValidInFutureKey", future);
        made.intermediates(&root);
        made.pkcs12(&root);
        made.weak();
        made.put("testInvalidCANoCert1", request());
        made
    }

    /// A material's text.
    pub fn text(&self, name: &str) -> String {
        self.0.get(name).unwrap_or_else(|| panic!("no material {name}")).clone()
    }

    fn put(&mut self, name: &'static str, text: String) {
        self.0.insert(name, text);
    }

    fn pair(&mut self, certificate: &'static str, key: &'static str, pair: (String, String)) {
        self.put(certificate, pair.0);
        self.put(key, pair.1);
    }

    /// Leaves of an intermediate CA, and the chain with text between its blocks.
    fn intermediates(&mut self, root: &Ca) {
        let intermediate = ca("intermediate", Some(root));
        self.put(
            "testIntCACertificateChain",
            format!("subject=intermediate\n{}\nroot\n{}", intermediate.pem(), root.pem()),
        );
        let (leaf, key) = leaf_of(&intermediate, |_| {});
        self.pair("testCertificateWithIntCA", "testPrivateKeyWithIntCA", (leaf + &intermediate.pem(), key));
        let (expired, key) = leaf_of(&intermediate, expire);
        self.pair("testExpiredCertificateWithIntCA", "testExpiredCertificateKey", (expired + &intermediate.pem(), key));
        let (certificate, key) = leaf_of(root, |_| {});
        let parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
        self.pair("bz1723400cert", "bz1723400key1", (certificate, format!("{parameters}{key}")));
    }

    /// PEM as `openssl pkcs12` writes it: bag attributes before each block.
    fn pkcs12(&mut self, root: &Ca) {
        let bag = |text: &str| {
            format!(
                "Bag Attributes\n    friendlyName: leaf\n    localKeyID: 01 02\nKey Attributes: <No Attributes>\n{text}"
            )
        };
        let intermediate = ca("issuing", Some(root));
        let (leaf, key) = leaf_of(&intermediate, |_| {});
        self.put("leafCertExtractedFromP12", bag(&leaf));
        self.put("leafKeyExtractedFromP12", bag(&key));
        self.put("caChainExtractedFromP12", bag(&intermediate.pem()) + &bag(&root.pem()));
    }

    /// Certificates whose signature algorithm is SHA-1 or MD5. Libraries no longer create them, so the algorithm's name
    /// is replaced in a valid certificate: only the name is checked.
    fn weak(&mut self) {
        let (root, root_key) = rsa_ca("weak root");
        let weak_root = named(&root, SHA1);
        let issuer = rcgen::Issuer::new(ca_params("weak root"), KeyPair::from_pem(&root_key).unwrap());
        let leaf = || {
            let key = KeyPair::generate().unwrap();
            (params("leaf").signed_by(&key, &issuer).unwrap().pem(), key.serialize_pem())
        };
        self.put("testCertificateRsaSha1SelfSignedRootCA", weak_root);
        self.pair("testCertificateRsaSha256", "testCertificateRsaSha256Key", leaf());
        let (good, key) = leaf();
        self.pair("testCertificateRsaSha1", "testCertificateRsaSha1Key", (named(&good, SHA1), key));
        let (own, own_key) = rsa_ca("itself");
        self.pair("testCertificateMD5SelfSigned", "testCertificateMD5SelfSignedKey", (named(&own, MD5), own_key));
    }
}

/// Last byte of `1.2.840.113549.1.1.x`.
const SHA1: u8 = 5;
const MD5: u8 = 4;

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(vec!["www.example.com".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn ca_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

fn ca(name: &str, issuer: Option<&Ca>) -> Ca {
    let key = KeyPair::generate().unwrap();
    match issuer {
        None => CertifiedIssuer::self_signed(ca_params(name), key).unwrap(),
        Some(issuer) => CertifiedIssuer::signed_by(ca_params(name), key, issuer).unwrap(),
    }
}

fn leaf_of(ca: &Ca, configure: impl FnOnce(&mut CertificateParams)) -> (String, String) {
    let mut params = params("leaf");
    configure(&mut params);
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, ca).unwrap().pem(), key.serialize_pem())
}

fn self_signed(configure: impl FnOnce(&mut CertificateParams)) -> (String, String) {
    let mut params = params("itself");
    configure(&mut params);
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

fn rsa_ca(name: &str) -> (String, String) {
    let key = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
    (ca_params(name).self_signed(&key).unwrap().pem(), key.serialize_pem())
}

fn request() -> String {
    let key = KeyPair::generate().unwrap();
    params("request").serialize_request(&key).unwrap().pem().unwrap()
}

fn expire(params: &mut CertificateParams) {
    params.not_before = rcgen::date_time_ymd(2001, 1, 1);
    params.not_after = rcgen::date_time_ymd(2002, 1, 1);
}

/// The certificate with another algorithm in place of SHA-256 with RSA, in both fields that name it.
fn named(pem: &str, algorithm: u8) -> String {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let body: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    let mut der = STANDARD.decode(body).unwrap();
    let sha256_with_rsa = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
    let places: Vec<usize> = (0..der.len() - 9).filter(|start| der[*start..start + 9] == sha256_with_rsa).collect();
    assert_eq!(places.len(), 2);
    for start in places {
        der[start + 8] = algorithm;
    }
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", STANDARD.encode(der))
}

/// Evaluates a symbolic text: a literal, a material, a concatenation, a replacement.
fn resolve(symbol: &Value, materials: &Materials) -> String {
    if let Some(text) = symbol.get("literal").and_then(Value::as_str) {
        return text.to_owned();
    }
    if let Some(name) = symbol.get("material").and_then(Value::as_str) {
        return materials.text(name);
    }
    if let Some(parts) = symbol.get("concat").and_then(Value::as_array) {
        return parts.iter().map(|part| resolve(part, materials)).collect();
    }
    let text = resolve(&symbol["replace_in"], materials);
    text.replace(symbol["from"].as_str().unwrap(), symbol["to"].as_str().unwrap())
}

/// True if a route with this material is admitted.
pub fn extended_validation(case: &Value, _: &[Value]) -> Vec<String> {
    let materials = Materials::get();
    let mut flat = case["objects"][0].clone();
    for field in ["certificate", "key", "caCertificate", "destinationCACertificate"] {
        if let Some(symbol) = flat["tls"].get(field).cloned() {
            flat["tls"][field] = json!(resolve(&symbol, materials));
        }
    }
    let mut world = World::new(&json!({}));
    world.insert(manifest(&flat));
    let verdict = world.verdict("ns/name");
    let mut found = differ(
        format!("admitted ({verdict:?})"),
        Some(verdict == Verdict::Admitted),
        case["expect"]["admitted"].as_bool(),
    );
    if let Verdict::Refused(reason, _) = &verdict {
        // What the API server also rejects does not reach the router's check.
        let wanted = ["InvalidManifest", case["expect"]["reason_if_rejected"].as_str().unwrap()];
        found.extend(differ("reason", wanted.contains(&reason.as_str()), true));
    }
    found
}
