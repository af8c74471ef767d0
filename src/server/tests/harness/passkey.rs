//! A passkey in software: ECDSA on P-256, as `WebAuthn` has it
//! (<https://www.w3.org/TR/webauthn-3/#sctn-authenticator-data>).

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::totp::{cookies, password, session};
use super::{Answer, By, Server};

/// The address of the pages in these tests.
pub const ORIGIN: &str = "http://localhost:8001";

const PRESENT: u8 = 1;
const HAS_KEY: u8 = 0x40;

/// See the module.
pub struct SoftKey {
    pair: EcdsaKeyPair,
    id: Vec<u8>,
    /// As it was last told.
    pub counter: u32,
    /// The address of the page that it is shown to.
    pub origin: String,
}

/// Somebody who has added a passkey.
pub struct Keyed {
    /// Their browser, which is logged in.
    pub browser: By,
    pub key: SoftKey,
    /// What was answered when it was added.
    pub added: Value,
}

impl SoftKey {
    pub fn new(number: u8) -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).expect("a key");
        Self { pair, id: vec![number; 16], counter: 1, origin: ORIGIN.to_owned() }
    }

    /// The same key once more, as somebody has who copied it.
    pub fn copied(&self) -> Self {
        let document = self.pair.to_pkcs8v1().expect("a document");
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, document.as_ref()).expect("the key");
        Self { pair, id: self.id.clone(), counter: self.counter, origin: self.origin.clone() }
    }

    /// The answer to `navigator.credentials.create()`.
    pub fn create(&self, options: &Value) -> Value {
        let place = self.pair.public_key().as_ref();
        let (x, y) = (&place[1..33], &place[33..65]);
        let length = u8::try_from(self.id.len()).expect("a short id");
        // CBOR: {1: 2, 3: -7, -1: 1, -2: x, -3: y}
        let cose = [&[0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32], x, &[0x22, 0x58, 32], y].concat();
        let key = [&[0; 16][..], &[0, length], &self.id, &cose].concat();
        let data = [self.data(options["rp"]["id"].as_str().expect("a host"), PRESENT | HAS_KEY), key].concat();
        let size = u8::try_from(data.len()).expect("short data");
        // CBOR: {"fmt": "none", "attStmt": {}, "authData": data}
        let object = [&b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58"[..], &[size], &data].concat();
        let response =
            json!({"attestationObject": text(&object), "clientDataJSON": text(&self.said("create", options))});
        json!({"id": text(&self.id), "rawId": text(&self.id), "type": "public-key", "response": response})
    }

    /// The answer to `navigator.credentials.get()`.
    pub fn get(&mut self, options: &Value) -> Value {
        self.counter += 1;
        self.get_uncounted(options)
    }

    /// The same of a key that does not count, as those that several devices share.
    pub fn get_uncounted(&self, options: &Value) -> Value {
        let data = self.data(options["rpId"].as_str().expect("a host"), PRESENT);
        let said = self.said("get", options);
        let signed = [&data[..], &Sha256::digest(&said)].concat();
        let signature = self.pair.sign(&SystemRandom::new(), &signed).expect("a signature");
        let response = json!({
            "authenticatorData": text(&data), "clientDataJSON": text(&said), "signature": text(signature.as_ref()),
            "userHandle": null,
        });
        json!({"id": text(&self.id), "rawId": text(&self.id), "type": "public-key", "response": response})
    }

    fn data(&self, host: &str, flags: u8) -> Vec<u8> {
        [&Sha256::digest(host.as_bytes())[..], &[flags], &self.counter.to_be_bytes()].concat()
    }

    fn said(&self, what: &str, options: &Value) -> Vec<u8> {
        let challenge = &options["challenge"];
        let said = json!({
            "type": format!("webauthn.{what}"), "challenge": challenge, "origin": self.origin, "crossOrigin": false,
        });
        said.to_string().into_bytes()
    }
}

fn text(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// Adds a viewer of this name and a passkey of theirs.
pub async fn keyed(server: &Server, name: &str, number: u8) -> Keyed {
    let browser = server.person(name, "viewer").await;
    let key = SoftKey::new(number);
    let added = add(server, &browser, &key, "Blue key").await.ok(201);
    Keyed { browser, key, added }
}

/// Adds a passkey in a browser.
pub async fn add(server: &Server, by: &By, key: &SoftKey, name: &str) -> Answer {
    let begun = server.post(by, "/api/account/passkeys", json!({})).await.ok(201);
    let confirm = json!({"name": name, "credential": key.create(&begun["options"])});
    server.post(by, "/api/account/passkeys/confirm", confirm).await
}

/// What a page asks a passkey to sign.
pub fn options(page: &str) -> Option<Value> {
    let text = page.split("data-options=\"").nth(1)?.split('"').next()?;
    serde_json::from_str(&text.replace("&quot;", "\"").replace("&amp;", "&")).ok()
}

/// What the login's second step asks a passkey to sign, for whoever has these cookies.
pub async fn asked(server: &Server, pending: &str) -> Option<Value> {
    options(&server.get(&By::Cookie(pending.to_owned()), "/login/code").await.text())
}

/// Sends what a passkey has signed; the answer.
pub async fn show(server: &Server, pending: &str, credential: &Value) -> Answer {
    let plain = credential.to_string().replace('%', "%25").replace('&', "%26").replace('+', "%2B");
    let form = format!("credential={plain}&next=/jobs");
    server.call(&By::Cookie(pending.to_owned()), "POST", "/ui/login/passkey", form).await
}

/// Logs in with the right password and this passkey; the browser, if it was let in.
pub async fn log_in(server: &Server, name: &str, key: &mut SoftKey) -> Option<By> {
    let (_, pending) = password(server, name, "").await;
    let signed = key.get(&asked(server, &pending).await?);
    session(&cookies(&show(server, &pending, &signed).await))
}
