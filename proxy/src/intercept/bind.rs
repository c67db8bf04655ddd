//! Bind: parameters that go straight into offloaded columns.

use toastrack_offload::{Put, Ticket, ValueKind};
use toastrack_wire::frontend::Bind;
use toastrack_wire::{EncodeError, FORMAT_BINARY};

use super::prepare::Sink;
use crate::session::ParamSite;

/// Parameters that became references.
pub(crate) struct OffloadedParams {
    replaced: Vec<(usize, Vec<u8>)>,
    /// Everything is durable once this is.
    pub(crate) ticket: Ticket,
}

/// Puts the parameters at `sites` into the store that are worth it. None: none was.
pub(crate) fn offload_params(
    sink: &Sink<'_>,
    bind: &Bind<'_>,
    sites: &[ParamSite],
) -> Option<OffloadedParams> {
    let mut replaced = Vec::new();
    let mut ticket = None;
    for site in sites {
        let Some(value) = bind.param(site.index) else {
            continue;
        };
        let binary = bind.param_format(site.index) == FORMAT_BINARY;
        let Some(put) = sink.offload(&site.column, value, binary, site.used_elsewhere) else {
            continue;
        };
        ticket = ticket.max(Some(put.ticket));
        replaced.push((site.index, spelled(&put, binary)));
    }
    Some(OffloadedParams {
        replaced,
        ticket: ticket?,
    })
}

impl OffloadedParams {
    /// Writes the Bind with references in place of the values.
    pub(crate) fn encode(&self, bind: &Bind<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let mut replaced = self.replaced.iter().peekable();
        bind.encode_with(out, |index| {
            let (_, bytes) = replaced.next_if(|(at, _)| *at == index)?;
            Some(bytes.as_slice())
        })
    }
}

/// The reference in the format that the parameter came in.
pub(super) fn spelled(put: &Put, binary: bool) -> Vec<u8> {
    let spelling = put.reference.spelling();
    match (put.reference.kind(), binary) {
        (ValueKind::Jsonb, true) => [&[1], &*spelling].concat(),
        (ValueKind::Bytea, false) => {
            let mut text = Vec::new();
            toastrack_value::bytea::write_hex(&spelling, &mut text);
            text
        }
        _ => spelling.to_vec(),
    }
}
