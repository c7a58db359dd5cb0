"""Values of all types of both servers: from the bytes of a row image to what ``model/events.py`` calls a value, many at a time."""
