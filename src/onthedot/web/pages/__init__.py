"""The pages, one module each. A module names its endpoints in `routes`; see "How to add a page" in the architecture."""
