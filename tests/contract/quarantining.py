"""Puts one event into a quarantine, as a transaction does."""

from sqlalchemy import Connection

from applier.model.rejected_event import KeptRecord, RejectedEvent
from applier.sinks.bookkeeping.quarantine import Quarantine
from applier.sinks.quarantine import Quarantined


def store(quarantine: Quarantine, connection: Connection, event: RejectedEvent, record: KeptRecord) -> bool:
    """Store the event; False if the quarantine has it already."""
    return bool(quarantine.store(connection, Quarantined(lambda _: record, (event,))))
