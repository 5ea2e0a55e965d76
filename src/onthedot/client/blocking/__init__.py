"""What Client can do: the same areas, each method the one of AsyncClient that it waits for and that documents it."""
