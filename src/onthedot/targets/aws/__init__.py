"""The way to the services of AWS, for the kinds that use one. Its client is an extra, loaded where it is needed."""
