"""Writes usage of past days into the store of a server.

Usage: history.py STORE < JSON, a list of [subject, name, amount].
"""

import json
import sqlite3
import sys

with sqlite3.connect(sys.argv[1], timeout=10) as store:
    store.executemany(
        "INSERT INTO counters (subject, name, value) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET value = value + excluded.value",
        json.load(sys.stdin),
    )
