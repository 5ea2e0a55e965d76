"""What every route shares: bodies, parameters, responses, problems."""
