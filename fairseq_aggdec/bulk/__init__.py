"""Decoding of large text files, shard by shard, by processes of one machine or on a Ray cluster."""
