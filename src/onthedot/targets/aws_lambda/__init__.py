"""The kind `lambda`: functions of AWS Lambda. Its folder is not named so, because that is a word of Python."""
