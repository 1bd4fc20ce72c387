"""Keeps a database locked for writing until its input ends. Argument: the database."""

from __future__ import annotations

import sys

from dragoman.store.sqlite.database import Database

db = Database(sys.argv[1])
db.run("BEGIN IMMEDIATE")
sys.stdout.write("locked\n")
sys.stdout.flush()
sys.stdin.read()
db.run("ROLLBACK")
db.close()
