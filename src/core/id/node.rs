//! The node that an ID belongs to.

use crate::{Error, Layout, Node};

impl Layout {
    /// Returns which of the nodes, of which `node` is any, has the worker of an ID. None has one that is left over, or any if
    /// there are fewer workers than nodes or something else makes the layout's IDs.
    ///
    /// # Errors
    /// [`Error::ImpossibleId`], as for [`Layout::unpack`].
    pub fn node_of(&self, id: u64, node: Node) -> Result<Option<u32>, Error> {
        let worker = self.unpack(id)?.worker;
        Ok(node.holder_of(worker, self.workers()).filter(|_| self.generates))
    }
}
