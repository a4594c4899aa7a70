"""Serving engines with constrain and with their own back ends: the same requests, over HTTP, to a tiny model."""
