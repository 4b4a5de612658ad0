"""What PostgreSQL keeps of the promises of a ledger: triggers, views that hide, and a role without rights.

The tables are those of :mod:`~skldp.accounting._ledger.schema`, in the first schema of the connection's search path.
Their owner makes them and can erase; whoever asks has a role of their own, a tenant, that may only read and add.
"""

from collections.abc import Sequence

from skldp.accounting._ledger.schema import TABLES, VIEWS

__all__ = ["MIGRATED", "VERSIONS", "create_statements", "grant_statements", "migrate_statements", "trigger_names"]

VERSIONS = "versions"
# The earlier version that its owner can bring to this one.
MIGRATED = 3
_CHANGES = ("update", "delete", "truncate")
# Of which a tenant reads views alone.
_HIDDEN = ("answers", "kept", "salts")
# A row may go if it was erased: then an erasure tells of it, and what it has cost is charged already.
_KEEP = """CREATE OR REPLACE FUNCTION keep_a_ledger() RETURNS trigger LANGUAGE plpgsql
SET search_path = {schema}, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' AND TG_TABLE_NAME IN ('answers', 'kept') THEN
        IF EXISTS (SELECT 1 FROM erasures e WHERE e.release = OLD.release AND e.person = OLD.person) THEN
            RETURN OLD;
        END IF;
    ELSIF TG_OP = 'DELETE' AND TG_TABLE_NAME = 'salts' THEN
        IF EXISTS (SELECT 1 FROM erasures e WHERE e.release = OLD.release) THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'a privacy ledger is append-only';
END $$"""
_OWN = """CREATE FUNCTION own_release() RETURNS trigger LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
BEGIN
    IF NEW.tenant <> current_user THEN
        RAISE EXCEPTION 'a release is entered under the name of who asks';
    END IF;
    RETURN NEW;
END $$"""
# A barrier keeps functions of whoever reads away from rows that the view hides.
_SEEN = """CREATE VIEW {view} WITH (security_barrier) AS SELECT {columns}
           FROM {table} t LEFT JOIN releases r ON r.release = t.release"""
_MAY_SEE = "(r.tenant = current_user OR pg_has_role(current_user, {owner}, 'MEMBER'))"


def trigger_names() -> set[str]:
    """Every trigger that must be there and enabled."""
    return {f"{table}_keeps_on_{change}" for table in TABLES for change in _CHANGES} | {"releases_own"}


def create_statements(schema: str, owner: str) -> list[str]:
    """Make an empty ledger, within a transaction of its owner.

    Parameters
    ----------
    schema, owner : str
        Names of the schema and of the role.

    Returns
    -------
    list of str
    """
    may_see = _may_see(owner)
    output = f"t.release, t.person, CASE WHEN {may_see} THEN t.output ELSE -1 END AS output"
    salt = f"t.release, CASE WHEN {may_see} THEN t.salt END AS salt"
    return [
        f"CREATE TABLE {VERSIONS} (version BIGINT PRIMARY KEY, time TEXT NOT NULL)",
        *(f"CREATE TABLE {table} ({columns})" for table, columns in TABLES.items()),
        _KEEP.format(schema=_quoted(schema)),
        _OWN.format(schema=_quoted(schema)),
        *(trigger for table in TABLES for trigger in _triggers(table)),
        "CREATE TRIGGER releases_own BEFORE INSERT ON releases FOR EACH ROW EXECUTE FUNCTION own_release()",
        _SEEN.format(view="recorded", table="answers", columns=output),
        _view_of_rows(owner),
        _SEEN.format(view="recorded_salts", table="salts", columns=salt),
    ]


def migrate_statements(schema: str, owner: str, tenants: Sequence[str]) -> list[str]:
    """Bring a ledger of the version before to this one, within a transaction of its owner.

    Parameters
    ----------
    schema, owner : str
    tenants : sequence of str
        The roles that may ask.

    Returns
    -------
    list of str
    """
    return [
        f"CREATE TABLE kept ({TABLES['kept']})",
        _KEEP.format(schema=_quoted(schema)),
        *_triggers("kept"),
        _view_of_rows(owner),
        *(statement for tenant in tenants for statement in grant_statements(schema, tenant)),
    ]


def _triggers(table: str) -> list[str]:
    return [
        f"CREATE TRIGGER {table}_keeps_on_{change} BEFORE {change} ON {table} "
        f"FOR EACH {'STATEMENT' if change == 'truncate' else 'ROW'} EXECUTE FUNCTION keep_a_ledger()"
        for change in _CHANGES
    ]


def _may_see(owner: str) -> str:
    return _MAY_SEE.format(owner="'" + owner.replace("'", "''") + "'")


def _view_of_rows(owner: str) -> str:
    sealed = f"t.release, t.person, CASE WHEN {_may_see(owner)} THEN t.sealed END AS sealed"
    return _SEEN.format(view="recorded_rows", table="kept", columns=sealed)


def grant_statements(schema: str, tenant: str) -> list[str]:
    """Let a role ask, and nothing more: read what is no output of others, and add.

    Parameters
    ----------
    schema, tenant : str
        Names of a schema and of a role.

    Returns
    -------
    list of str
    """
    role = _quoted(tenant)
    readable = [VERSIONS, *(table for table in TABLES if table not in _HIDDEN)]
    return [
        f"GRANT USAGE ON SCHEMA {_quoted(schema)} TO {role}",
        f"GRANT SELECT ON {', '.join([*readable, *VIEWS])} TO {role}",
        f"GRANT INSERT ON {', '.join(table for table in TABLES if table != 'erasures')} TO {role}",
    ]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
