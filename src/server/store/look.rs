//! A look at all that lives.

use async_trait::async_trait;

use super::known::Known;
use super::{Result, Tx};

/// What somebody does with all that lives.
pub type Look<'l> = dyn FnMut(&Known) + Send + 'l;

/// Looking.
#[async_trait]
pub trait Looking {
    /// Shows all that lives where it is: a writer knows it without reading it again, and a reader may find it on the
    /// board. Nobody else can commit meanwhile, so it must not take long.
    async fn look(&mut self, look: &mut Look<'_>) -> Result<()>;
}

impl dyn Tx + '_ {
    /// The same, with what came of it.
    pub async fn see<R: Send>(&mut self, see: impl FnOnce(&Known) -> R + Send) -> Result<R> {
        let (mut see, mut seen) = (Some(see), None);
        self.look(&mut |known| seen = see.take().map(|see| see(known))).await?;
        Ok(seen.expect("a look shows once what there is, or fails"))
    }
}
