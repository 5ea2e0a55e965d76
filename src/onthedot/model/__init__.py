"""The nouns of On the Dot as frozen structs: one definition for REST, jobs file, command line, client and store."""
