"""The schema of `control.sqlite3` as migrations: released statements are never edited, a new tuple follows them."""

_STATES = "'queued','awaiting_user','running','cancelling','succeeded','failed','cancelled','outcome_unknown'"
_MOVES = """(OLD.state = 'queued' AND NEW.state IN ('awaiting_user','running','cancelled','failed'))
    OR (OLD.state = 'awaiting_user' AND NEW.state IN ('queued','cancelled','failed'))
    OR (OLD.state = 'running' AND NEW.state IN ('succeeded','failed','cancelling','outcome_unknown'))
    OR (OLD.state = 'cancelling' AND NEW.state IN ('cancelled','succeeded','failed','outcome_unknown'))"""
_EFFECTS = """(NEW.state IN ('queued','awaiting_user') AND NEW.effect = 'none')
    OR (NEW.state IN ('running','cancelling','failed','cancelled') AND NEW.effect IN ('none','partial'))
    OR (NEW.state = 'failed' AND NEW.effect = 'complete')
    OR (NEW.state = 'succeeded' AND NEW.effect = 'complete')
    OR (NEW.state = 'outcome_unknown' AND NEW.effect = 'unknown')"""
# A receipt without an epoch belongs to a tool whose retry identity lives in memory.
_EPOCH = """NEW.retry_epoch IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM epochs WHERE epoch = NEW.retry_epoch AND session_id = NEW.session_id AND expires_s > NEW.updated_s
    AND instance_id = (SELECT instance_id FROM instance))"""
_REMEMBER = """INSERT INTO history (operation_id, session_id, workspace_id, tool, state, effect, at_s, place)
    VALUES (NEW.operation_id, NEW.session_id, NEW.workspace_id, NEW.tool, NEW.state, NEW.effect, NEW.updated_s,
    1 + COALESCE((SELECT MAX(place) FROM history
        WHERE session_id = NEW.session_id AND workspace_id = NEW.workspace_id), 0))"""

_RECEIPTS = (
    """CREATE TABLE instance (
        only INTEGER PRIMARY KEY CHECK (only = 1), instance_id TEXT NOT NULL, started_s INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE epochs (
        epoch TEXT PRIMARY KEY, session_id TEXT NOT NULL, instance_id TEXT NOT NULL, expires_s INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID""",
    f"""CREATE TABLE receipts (
        sequence INTEGER PRIMARY KEY AUTOINCREMENT,
        operation_id TEXT NOT NULL UNIQUE CHECK (length(operation_id) = 40),
        session_id TEXT NOT NULL, client_label TEXT NOT NULL,
        retry_epoch TEXT, project_id TEXT NOT NULL, tool TEXT NOT NULL, request_key TEXT,
        fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 32),
        workspace_id TEXT, resource TEXT, generation TEXT,
        state TEXT NOT NULL CHECK (state IN ({_STATES})), effect TEXT NOT NULL,
        result BLOB, decided_by TEXT,
        created_s INTEGER NOT NULL, updated_s INTEGER NOT NULL
    ) STRICT""",
    """CREATE UNIQUE INDEX receipts_by_key ON receipts (retry_epoch, request_key, tool, project_id, session_id)
        WHERE request_key IS NOT NULL""",
    """CREATE TABLE history (
        sequence INTEGER PRIMARY KEY AUTOINCREMENT,
        operation_id TEXT NOT NULL, session_id TEXT NOT NULL, workspace_id TEXT, tool TEXT NOT NULL,
        state TEXT NOT NULL, effect TEXT NOT NULL, at_s INTEGER NOT NULL, place INTEGER NOT NULL
    ) STRICT""",
    "CREATE INDEX history_by_view ON history (session_id, workspace_id, place)",
    """CREATE TABLE tombstones (
        retry_epoch TEXT NOT NULL, request_key TEXT NOT NULL, tool TEXT NOT NULL, project_id TEXT NOT NULL,
        session_id TEXT NOT NULL, fingerprint BLOB NOT NULL, operation_id TEXT NOT NULL, state TEXT NOT NULL,
        effect TEXT NOT NULL, settled_s INTEGER NOT NULL,
        PRIMARY KEY (retry_epoch, request_key, tool, project_id, session_id)
    ) STRICT, WITHOUT ROWID""",
    f"""CREATE TRIGGER receipt_admit BEFORE INSERT ON receipts BEGIN
        SELECT RAISE(ABORT, 'lomi:illegal_move') WHERE NEW.state NOT IN ('queued','awaiting_user','running');
        SELECT RAISE(ABORT, 'lomi:effect') WHERE NOT ({_EFFECTS}) OR NEW.effect <> 'none';
        SELECT RAISE(ABORT, 'lomi:epoch') WHERE NEW.state = 'running' AND {_EPOCH};
        SELECT RAISE(ABORT, 'lomi:tombstone') FROM tombstones
            WHERE retry_epoch = NEW.retry_epoch AND request_key = NEW.request_key AND tool = NEW.tool
            AND project_id = NEW.project_id AND session_id = NEW.session_id;
    END""",  # noqa: S608  built of our own constants
    f"""CREATE TRIGGER receipt_move BEFORE UPDATE OF state, effect ON receipts BEGIN
        SELECT RAISE(ABORT, 'lomi:illegal_move') WHERE NOT ({_MOVES});
        SELECT RAISE(ABORT, 'lomi:effect') WHERE NOT ({_EFFECTS})
            OR (OLD.state IN ('queued','awaiting_user') AND NEW.effect <> 'none');
        SELECT RAISE(ABORT, 'lomi:epoch') WHERE NEW.state = 'running' AND {_EPOCH};
    END""",
    """CREATE TRIGGER receipt_result BEFORE UPDATE OF result ON receipts WHEN NEW.result IS NOT NULL BEGIN
        SELECT RAISE(ABORT, 'lomi:result_written') WHERE OLD.result IS NOT NULL;
        SELECT RAISE(ABORT, 'lomi:too_large') WHERE length(NEW.result) > 65536;
    END""",
    """CREATE TRIGGER receipt_identity BEFORE UPDATE OF operation_id, session_id, retry_epoch, project_id, tool,
        request_key, fingerprint, workspace_id, resource, generation, created_s ON receipts BEGIN
        SELECT RAISE(ABORT, 'lomi:identity');
    END""",
    f"CREATE TRIGGER receipt_reserved AFTER INSERT ON receipts BEGIN {_REMEMBER}; END",
    f"CREATE TRIGGER receipt_moved AFTER UPDATE OF state ON receipts BEGIN {_REMEMBER}; END",
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    """CREATE TABLE layout (
        only INTEGER PRIMARY KEY CHECK (only = 1), revision INTEGER NOT NULL, body BLOB NOT NULL
    ) STRICT""",
    """CREATE TRIGGER layout_grows BEFORE UPDATE ON layout BEGIN
        SELECT RAISE(ABORT, 'lomi:revision') WHERE NEW.revision <= OLD.revision;
    END""",
    """CREATE TABLE runtimes (
        generation TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL,
        identity BLOB NOT NULL CHECK (length(identity) <= 4096)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE artifacts (
        id TEXT PRIMARY KEY CHECK (length(id) = 32), class TEXT NOT NULL CHECK (class IN ('image','apk','file')),
        stage TEXT NOT NULL CHECK (stage IN ('reserved','ready')), session_id TEXT NOT NULL, workspace_id TEXT NOT NULL,
        project_id TEXT NOT NULL, reserved_bytes INTEGER NOT NULL, byte_length INTEGER, sha256 TEXT, wire BLOB,
        created_s INTEGER NOT NULL, expires_s INTEGER NOT NULL,
        CHECK (stage = 'reserved' OR (byte_length IS NOT NULL AND sha256 IS NOT NULL AND wire IS NOT NULL))
    ) STRICT, WITHOUT ROWID""",
)

APPLICATION = 0x4C6F6D69
"""'Lomi' in the database header: another program's database is never taken for ours."""
MIGRATIONS = (_RECEIPTS,)
