"""The normal form of schemas, and its algebra."""
