"""Being one node among others: heartbeat, lease, lost nodes, orders, duties."""
