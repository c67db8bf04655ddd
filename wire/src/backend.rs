//! What a server sends, as views over a message body, and the messages a proxy writes itself.
//!
//! Each `parse` takes the body behind tag and length and accepts it only when it is used up.
//! Strings are given as bytes: their encoding is the client's.

mod command;
mod description;
mod error_response;
mod row;
mod session;

pub use command::{
    CommandComplete, CopyResponse, encode_command_complete, encode_ready_for_query,
    ready_for_query_status,
};
pub use description::{FieldView, ParameterDescription, RowDescription, patch_oid};
pub use error_response::{ErrorBuilder, ErrorFields, Severity};
pub use row::{DataRow, RowWriter};
pub use session::{
    Authentication, BackendKeyData, CANCEL_KEY_MAX_LEN, NotificationResponse, ParameterStatus,
    encode_parameter_status,
};
