"""Durable record of each person's answers.

Read the modules in this order; each imports only those above it.

- Records: ``records`` (ids, tables, rows and the hash chain).
- Storage: ``lock_file`` (the lock and the last entry), ``store`` (interface), ``sqlite_store``, ``postgres_store``.
- State of a process: ``cache`` (records already read), ``verification`` (repeated decisions), ``state`` (open ledger).
- Calls: ``ledger_answers`` (with previews and erasure), ``ledger_releases``, ``reader``, ``privacy_ledger``.
"""
