"""The durable record of what every person has answered.

To be read in this order; a module asks those above it, never those below.

- What a record is: ``identity`` (who is who), ``schema`` (its tables, on any database), ``records`` (its rows, and the
  chain that binds them), ``erasures`` (rows that are taken out again).
- Where it is kept: ``companion`` (the file's lock and last entry), ``store`` (what any place must promise),
  ``migration`` and ``sqlite_store`` (a file), ``postgres_schema`` and ``postgres_store`` (a server).
- What is known of it: ``book`` (what this process has read), ``established`` (whether an answer was within its
  budget), ``settings`` (what it was made with), ``reader`` (all that can be learnt without asking anybody).
- What is done with it: ``plan`` (one call), ``dry_run``, ``releasing``, ``eraser``, and with all of them
  ``privacy_ledger``.
"""
