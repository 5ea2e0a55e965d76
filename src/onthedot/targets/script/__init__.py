"""The kind `script`: code of users in a sandbox."""
