//! Bind: parameter values on their way to a portal, and the same with some of them replaced.

use crate::error::{Direction, EncodeError, MessageError};
use crate::fields::{self, Fields};
use crate::formats::Formats;
use crate::frame::tag::frontend::BIND;
use crate::reader::Reader;
use crate::writer::OpenFrame;

/// How many places in the parameter list a [`Bind`] remembers.
const MARKS: usize = 16;

/// A Bind.
#[derive(Debug, Clone)]
pub struct Bind<'a> {
    /// Name of the portal to create; empty for the unnamed one.
    pub portal: &'a [u8],
    /// Name of the prepared statement; empty for the unnamed one.
    pub statement: &'a [u8],
    param_formats: Formats<'a>,
    /// The body up to the parameter formats, which is the two names.
    names: &'a [u8],
    /// The body from the parameter formats up to the first parameter.
    head: &'a [u8],
    params: &'a [u8],
    /// The body behind the last parameter.
    tail: &'a [u8],
    param_count: usize,
    result_formats: Formats<'a>,
    /// Where every `stride`-th parameter begins in `params`.
    marks: [u32; MARKS],
    stride: usize,
}

impl<'a> Bind<'a> {
    /// Reads a Bind body.
    ///
    /// # Errors
    /// When the body is not exactly a Bind, or has several parameter formats but not one for
    /// each parameter. An odd number of result formats is for the server to judge, which knows
    /// the columns.
    pub fn parse(body: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader::new("Bind", body);
        let portal = reader.cstr("portal name")?;
        let statement = reader.cstr("statement name")?;
        let names_end = reader.at();
        let param_formats = reader.formats("the parameter formats")?;
        let param_count = usize::from(reader.u16("the parameter count")?);
        if param_formats.count() > 1 && param_formats.count() != param_count {
            return Err(MessageError::FormatCount {
                formats: param_formats.count(),
                parameters: param_count,
            });
        }
        let head_end = reader.at();
        let from_params = reader.remaining();
        let stride = param_count.div_ceil(MARKS).max(1);
        let mut marks = [0; MARKS];
        let mut next_mark = 0;
        let tail = fields::check("Bind", from_params, param_count, |index, left| {
            if index == next_mark {
                marks[index / stride] = (from_params.len() - left) as u32;
                next_mark += stride;
            }
        })?;
        let mut reader = Reader::new("Bind", tail);
        let result_formats = reader.formats("the result formats")?;
        reader.end()?;
        Ok(Self {
            portal,
            statement,
            param_formats,
            names: &body[..names_end],
            head: &body[names_end..head_end],
            params: &from_params[..from_params.len() - tail.len()],
            tail,
            param_count,
            result_formats,
            marks,
            stride,
        })
    }

    /// How many parameters there are.
    #[must_use]
    pub fn param_count(&self) -> usize {
        self.param_count
    }

    /// The value of parameter `i`, counted from 0. `None` for NULL, and beyond the last.
    ///
    /// Cost: one step for up to 16 parameters, otherwise up to `param_count / 16`; to see all of
    /// them use [`Bind::params`].
    #[must_use]
    pub fn param(&self, i: usize) -> Option<&'a [u8]> {
        if i >= self.param_count {
            return None;
        }
        let mark = *self.marks.get(i / self.stride)? as usize;
        let skipped = i % self.stride;
        let mut fields = Fields::checked(self.params.get(mark..)?, skipped + 1);
        fields.nth(skipped)?
    }

    /// The format of parameter `i`: 0 for text, 1 for binary, with the rule for none or one code.
    #[must_use]
    pub fn param_format(&self, i: usize) -> i16 {
        self.param_formats.at(i)
    }

    /// The parameter formats as they were sent.
    #[must_use]
    pub fn param_formats(&self) -> Formats<'a> {
        self.param_formats
    }

    /// The values in order, `None` for NULL.
    #[must_use]
    pub fn params(&self) -> Fields<'a> {
        Fields::checked(self.params, self.param_count)
    }

    /// The formats asked for the result's columns.
    #[must_use]
    pub fn result_formats(&self) -> Formats<'a> {
        self.result_formats
    }

    /// Writes this Bind with the parameters for which `replace` gives bytes, and everything else
    /// byte for byte (S6). `replace` is asked once for each parameter, in order.
    ///
    /// # Errors
    /// `TooLong` for Postgres.
    pub fn encode_with<'r>(
        &self,
        out: &mut Vec<u8>,
        replace: impl FnMut(usize) -> Option<&'r [u8]>,
    ) -> Result<(), EncodeError> {
        self.encode_spliced(out, replace, |frame| frame.push(self.head))
    }

    /// Like [`Bind::encode_with`], where a replacement also says its format. The format array is
    /// kept as it was sent unless a replacement differs from it; then it is written out with one
    /// code for each parameter. `replace` is asked twice for each parameter.
    ///
    /// # Errors
    /// `TooLong` for Postgres.
    pub fn encode_with_formats<'r>(
        &self,
        out: &mut Vec<u8>,
        replace: impl Fn(usize) -> Option<(i16, &'r [u8])>,
    ) -> Result<(), EncodeError> {
        let format = |i| replace(i).map_or_else(|| self.param_format(i), |(format, _)| format);
        let value = |i| replace(i).map(|(_, value)| value);
        if (0..self.param_count).all(|i| format(i) == self.param_format(i)) {
            return self.encode_with(out, value);
        }
        self.encode_spliced(out, value, |frame| {
            frame.push_formats("parameter formats", (0..self.param_count).map(format))?;
            frame.push_count("parameters", self.param_count)
        })
    }

    fn encode_spliced<'r>(
        &self,
        out: &mut Vec<u8>,
        replace: impl FnMut(usize) -> Option<&'r [u8]>,
        head: impl FnOnce(&mut OpenFrame<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        // Replacements are references, much smaller than what they stand for, so room is made
        // for what surrounds the parameters and the rest as it is copied.
        let expected = self.names.len() + self.head.len() + self.tail.len();
        let mut frame = OpenFrame::begin(out, Direction::Frontend, BIND, expected)?;
        frame.push(self.names)?;
        head(&mut frame)?;
        fields::splice(&mut frame, self.params, self.param_count, replace)?;
        frame.push(self.tail)?;
        frame.finish();
        Ok(())
    }
}

/// Writes a Bind. `None` is NULL.
///
/// # Errors
/// `ZeroByte` in a name, `TooMany` formats or parameters, `TooLong` for Postgres.
pub fn encode_bind(
    out: &mut Vec<u8>,
    portal: &[u8],
    statement: &[u8],
    param_formats: &[i16],
    params: &[Option<&[u8]>],
    result_formats: &[i16],
) -> Result<(), EncodeError> {
    let mut frame = OpenFrame::begin(out, Direction::Frontend, BIND, 0)?;
    frame.push_cstr("portal name", portal)?;
    frame.push_cstr("statement name", statement)?;
    frame.push_formats("parameter formats", param_formats.iter().copied())?;
    frame.push_count("parameters", params.len())?;
    for param in params {
        match param {
            Some(value) => frame.push_value(value)?,
            None => frame.push_null()?,
        }
    }
    frame.push_formats("result formats", result_formats.iter().copied())?;
    frame.finish();
    Ok(())
}

#[cfg(test)]
mod tests;
