"""The kind `queue`: messages to brokers that the operator configured."""
