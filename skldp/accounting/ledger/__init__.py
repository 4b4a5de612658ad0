"""Durable record of what every person has answered.

Read the modules in this order; each imports only those above it.

- Records: ``records`` (ids of people, tables, rows and the chain that binds them).
- Storage: ``lock_file`` (the lock and the last entry), ``store`` (interface), ``sqlite_store``, ``postgres_store``.
- State of a process: ``cache`` (what it has read), ``verification`` (decisions checked again), ``reader`` (an open
  ledger that is read).
- Calls: ``ledger_answers``, ``ledger_releases``, ``preview`` (with erasure); ``privacy_ledger`` has them as methods.
"""
