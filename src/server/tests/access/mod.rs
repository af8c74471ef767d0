//! Users, their credentials, and their limits.

mod accounts;
mod escalation;
mod factors;
mod notices;
mod passkeys;
mod passwords;
mod quotas;
mod rates;
mod reauthentication;
mod redaction;
mod revocation;
mod routes;
mod sessions;
mod unauthenticated;
