"""The kind `webhook`: one HTTP request for each attempt, to addresses that the egress rule allows."""
