"""Creates that arrive complete are answered without the framework."""
