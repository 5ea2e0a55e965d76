"""Jobs of a cluster while its API server is restarted and nodes are killed: none lost, none started twice."""
