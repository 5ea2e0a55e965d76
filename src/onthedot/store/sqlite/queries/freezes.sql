-- Pausing the whole installation (see `cluster/freezes.py`).

-- name: current_freeze
SELECT began_at, note, actor FROM freezes WHERE ended_at IS NULL;

-- name: begin_freeze
INSERT INTO freezes (began_at, note, actor) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;

-- name: note_freeze
UPDATE freezes SET note = ?1, actor = ?2 WHERE ended_at IS NULL;

-- name: end_freeze
-- Not before it began: the clock may have been set back.
UPDATE freezes SET ended_at = CASE WHEN began_at > ?1 THEN began_at ELSE ?1 END WHERE ended_at IS NULL;
