//! Start-up and SCRAM log-in.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use futures::Sink;
use pgwire::api::auth::mechanism::AuthMechanismFactory;
use pgwire::api::auth::sasl::scram::ScramAuth;
use pgwire::api::auth::{
    AuthDriver, AuthOutcome, ServerParameterProvider, StartupHandler, protocol_negotiation,
    save_startup_parameters_to_metadata,
};
use pgwire::api::{ClientInfo, METADATA_USER};
use pgwire::error::{ErrorInfo, PgWireError, PgWireResult};
use pgwire::messages::startup::PasswordMessageFamily;
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};

use crate::counters::Counters;
use crate::credentials::Credentials;

/// Authenticates every connection with SCRAM-SHA-256.
pub(crate) struct Login {
    driver: AuthDriver<Parameters>,
    scram: ScramAuth,
    counters: Arc<Counters>,
}

impl Login {
    pub(crate) fn new(credentials: Credentials, counters: Arc<Counters>) -> Login {
        Login {
            driver: AuthDriver::new(Parameters),
            scram: ScramAuth::new(Arc::new(credentials)),
            counters,
        }
    }

    async fn next_step<C>(&self, client: &mut C, message: PasswordMessageFamily) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        match self.driver.advance_authentication(client, message).await? {
            AuthOutcome::InProgress => Ok(()),
            AuthOutcome::Authenticated { final_message, .. } => {
                self.driver
                    .complete_authentication(client, final_message)
                    .await
            }
        }
    }
}

#[async_trait]
impl StartupHandler for Login {
    async fn on_startup<C>(
        &self,
        client: &mut C,
        message: PgWireFrontendMessage,
    ) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        match message {
            PgWireFrontendMessage::Startup(startup) => {
                protocol_negotiation(client, &startup).await?;
                save_startup_parameters_to_metadata(client, &startup);
                let mechanism = self.scram.create();
                self.driver.begin_authentication(client, mechanism).await?;
                Ok(())
            }
            PgWireFrontendMessage::PasswordMessageFamily(message) => {
                let step = self.next_step(client, message).await;
                step.map_err(|error| match error {
                    // The SCRAM message of libpq leaves the user out; name the one that was asked for.
                    PgWireError::InvalidPassword(_) => {
                        Counters::add(&self.counters.logins_refused, 1);
                        refusal(client.metadata().get(METADATA_USER))
                    }
                    other => other,
                })
            }
            other => Err(PgWireError::ApiError(
                format!("{other:?} during log-in").into(),
            )),
        }
    }
}

fn refusal(user: Option<&String>) -> PgWireError {
    let user = user.map(String::as_str).unwrap_or_default();
    PgWireError::UserError(Box::new(ErrorInfo::new(
        "FATAL".to_owned(),
        "28P01".to_owned(),
        format!("password authentication failed for user \"{user}\""),
    )))
}

/// What a client is told after the log-in.
///
/// `DateStyle` and `IntervalStyle` are left out on purpose: dblink copies them into its own
/// session for each query when they differ.
struct Parameters;

impl ServerParameterProvider for Parameters {
    fn server_parameters<C: ClientInfo>(&self, _client: &C) -> Option<HashMap<String, String>> {
        let version = concat!("14.0 (toastrack ", env!("CARGO_PKG_VERSION"), ")");
        let parameters = [
            ("server_version", version),
            ("server_encoding", "UTF8"),
            ("client_encoding", "UTF8"),
            ("standard_conforming_strings", "on"),
            ("integer_datetimes", "on"),
        ];
        let owned = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Some(HashMap::from(owned))
    }
}
