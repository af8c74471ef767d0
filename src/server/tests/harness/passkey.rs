//! A software passkey: ECDSA on P-256 as in `WebAuthn` (<https://www.w3.org/TR/webauthn-3/#sctn-authenticator-data>).

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::totp::{log_in_with_password, session_actor, set_cookies};
use super::{Actor, TestResponse, TestServer};

/// The origin of the pages in these tests.
pub const ORIGIN: &str = "http://localhost:8001";

const USER_PRESENT: u8 = 1;
const HAS_CREDENTIAL: u8 = 0x40;

pub struct SoftPasskey {
    key_pair: EcdsaKeyPair,
    id: Vec<u8>,
    /// Its signature counter.
    pub counter: u32,
    /// The origin of the page that uses it.
    pub origin: String,
}

/// A user who has added a passkey.
pub struct PasskeyUser {
    /// Their signed-in browser.
    pub browser: Actor,
    pub key: SoftPasskey,
    /// The response when it was added.
    pub added: Value,
}

impl SoftPasskey {
    pub fn new(number: u8) -> Self {
        let key_pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).expect("a key");
        Self { key_pair, id: vec![number; 16], counter: 1, origin: ORIGIN.to_owned() }
    }

    /// Returns a clone of the key, as an attacker may have.
    pub fn cloned_key(&self) -> Self {
        let document = self.key_pair.to_pkcs8v1().expect("a document");
        let key_pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, document.as_ref()).expect("the key");
        Self { key_pair, id: self.id.clone(), counter: self.counter, origin: self.origin.clone() }
    }

    /// Returns the result of `navigator.credentials.create()`.
    pub fn create(&self, options: &Value) -> Value {
        let point = self.key_pair.public_key().as_ref();
        let (x, y) = (&point[1..33], &point[33..65]);
        let length = u8::try_from(self.id.len()).expect("a short id");
        // CBOR: {1: 2, 3: -7, -1: 1, -2: x, -3: y}
        let cose = [&[0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32], x, &[0x22, 0x58, 32], y].concat();
        let key = [&[0; 16][..], &[0, length], &self.id, &cose].concat();
        let data = [
            self.authenticator_data(options["rp"]["id"].as_str().expect("a host"), USER_PRESENT | HAS_CREDENTIAL),
            key,
        ]
        .concat();
        let size = u8::try_from(data.len()).expect("short data");
        // CBOR: {"fmt": "none", "attStmt": {}, "authData": data}
        let object = [&b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58"[..], &[size], &data].concat();
        let response = json!({"attestationObject": base64url(&object), "clientDataJSON": base64url(&self.client_data("create", options))});
        json!({"id": base64url(&self.id), "rawId": base64url(&self.id), "type": "public-key", "response": response})
    }

    /// Returns the result of `navigator.credentials.get()`.
    pub fn get(&mut self, options: &Value) -> Value {
        self.counter += 1;
        self.get_without_counter(options)
    }

    /// The same without a counter, as for keys that are synced between devices.
    pub fn get_without_counter(&self, options: &Value) -> Value {
        let data = self.authenticator_data(options["rpId"].as_str().expect("a host"), USER_PRESENT);
        let client_data = self.client_data("get", options);
        let signed_bytes = [&data[..], &Sha256::digest(&client_data)].concat();
        let signature = self.key_pair.sign(&SystemRandom::new(), &signed_bytes).expect("a signature");
        let response = json!({
            "authenticatorData": base64url(&data), "clientDataJSON": base64url(&client_data), "signature": base64url(signature.as_ref()),
            "userHandle": null,
        });
        json!({"id": base64url(&self.id), "rawId": base64url(&self.id), "type": "public-key", "response": response})
    }

    fn authenticator_data(&self, host: &str, flags: u8) -> Vec<u8> {
        [&Sha256::digest(host.as_bytes())[..], &[flags], &self.counter.to_be_bytes()].concat()
    }

    fn client_data(&self, kind: &str, options: &Value) -> Vec<u8> {
        let challenge = &options["challenge"];
        let client_data = json!({
            "type": format!("webauthn.{kind}"), "challenge": challenge, "origin": self.origin, "crossOrigin": false,
        });
        client_data.to_string().into_bytes()
    }
}

fn base64url(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// Adds a viewer of this name with a passkey.
pub async fn user_with_passkey(server: &TestServer, name: &str, number: u8) -> PasskeyUser {
    let browser = server.add_user(name, "viewer").await;
    let key = SoftPasskey::new(number);
    let added = add_passkey(server, &browser, &key, "Blue key").await.expect_status(201);
    PasskeyUser { browser, key, added }
}

/// Adds a passkey in a browser.
pub async fn add_passkey(server: &TestServer, actor: &Actor, key: &SoftPasskey, name: &str) -> TestResponse {
    let setup = server.post(actor, "/api/account/passkeys", json!({})).await.expect_status(201);
    let confirm = json!({"name": name, "credential": key.create(&setup["options"])});
    server.post(actor, "/api/account/passkeys/confirm", confirm).await
}

/// Returns the passkey options of a page.
pub fn passkey_options(page: &str) -> Option<Value> {
    let text = page.split("data-options=\"").nth(1)?.split('"').next()?;
    serde_json::from_str(&text.replace("&quot;", "\"").replace("&amp;", "&")).ok()
}

/// Returns the passkey options of the second sign-in step for these cookies.
pub async fn login_options(server: &TestServer, pending: &str) -> Option<Value> {
    passkey_options(&server.get(&Actor::Cookie(pending.to_owned()), "/login/code").await.text())
}

/// Sends a passkey's assertion; returns the response.
pub async fn send_assertion(server: &TestServer, pending: &str, credential: &Value) -> TestResponse {
    let escaped = credential.to_string().replace('%', "%25").replace('&', "%26").replace('+', "%2B");
    let form = format!("credential={escaped}&next=/jobs");
    server.call(&Actor::Cookie(pending.to_owned()), "POST", "/ui/login/passkey", form).await
}

/// Signs in with the correct password and this passkey; returns the browser on success.
pub async fn log_in(server: &TestServer, name: &str, key: &mut SoftPasskey) -> Option<Actor> {
    let (_, pending) = log_in_with_password(server, name, "").await;
    let assertion = key.get(&login_options(server, &pending).await?);
    session_actor(&set_cookies(&send_assertion(server, &pending, &assertion).await))
}
