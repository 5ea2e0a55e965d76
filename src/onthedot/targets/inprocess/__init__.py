"""The kind `function` of an embedded Scheduler: callables of the program itself."""
