"""Claim-check storage: reads the objects of rows that were too large for Kafka, from a directory or an object store, through fsspec.

Does not know what the objects hold: ``open_protocol.claim_check`` reads their content, and compares it with the placeholder.
"""
