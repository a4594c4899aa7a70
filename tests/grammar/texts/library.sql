-- A library.
CREATE TABLE IF NOT EXISTS authors (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- the key
    name VARCHAR(120) NOT NULL,
    born INTEGER CHECK (born BETWEEN 1400 AND 2100),
    country CHAR(2) DEFAULT 'DE' COLLATE NOCASE,
    created TIMESTAMP DEFAULT CURRENT_TIMESTAMP, price DECIMAL(8, 2) DEFAULT -0.5,
    full_name TEXT GENERATED ALWAYS AS (name || ' ' || country) STORED,
    UNIQUE (name, born) ON CONFLICT REPLACE,
    CONSTRAINT fk FOREIGN KEY (country) REFERENCES countries (code) ON DELETE SET NULL ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED
) STRICT, WITHOUT ROWID;

create table kv(key TEXT primary key, value, date);
create unique index if not exists kv_i on kv(key collate nocase desc, lower(value)) where value is not null;

WITH RECURSIVE cnt(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM cnt WHERE x < 10), b AS MATERIALIZED (SELECT 2)
SELECT x, (SELECT count(*) FROM b) FROM cnt ORDER BY x DESC LIMIT 5 OFFSET 2;

SELECT b.title, a.name AS author, COUNT(DISTINCT l.id) FILTER (WHERE l.open) AS "open loans",
       row_number() OVER (PARTITION BY a.country ORDER BY a.born DESC) AS n,
       sum(price) OVER w, avg(price) OVER (w ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)
FROM books b
JOIN authors AS a ON a.id = b.author_id
LEFT OUTER JOIN loans l USING (book_id)
NATURAL JOIN x CROSS JOIN (SELECT 1) AS y, json_each(b.tags) j
WHERE l.book_id IS NULL AND b.title LIKE 'A\%%' ESCAPE '\' AND NOT EXISTS (SELECT 1 FROM t)
  AND (a.born, b.id) IN (VALUES (1, 2), (3, 4)) OR b.price NOT BETWEEN 1.5 AND 2e3 AND b.x NOTNULL
GROUP BY a.id, b.title HAVING COUNT(*) > 1 AND MAX(b.price) <= 20 * (1 + 0.19)
WINDOW w AS (ORDER BY b.id)
ORDER BY author COLLATE NOCASE ASC NULLS LAST, 2 DESC
LIMIT 20, 10;

INSERT INTO kv(key, value) VALUES ('a', x'0AFF'), ('it''s', NULL), (?1, :name)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, date = datetime('now') WHERE kv.value IS NOT excluded.value
RETURNING *, key AS k;

INSERT OR REPLACE INTO t SELECT * FROM u WHERE a->>'$.b' = 'x' UNION SELECT 1; REPLACE INTO t DEFAULT VALUES;

UPDATE OR IGNORE t AS q SET (a, b) = (SELECT 1, 2), c = CASE WHEN a > 1 THEN 'big' WHEN a IS NULL THEN NULL ELSE -a END
FROM u WHERE u.id = q.id AND NOT(q.a IN (1, 2, 3));

DELETE FROM main.t WHERE id IN (SELECT id FROM [old table] WHERE "key" = `k`) RETURNING id;

BEGIN TRANSACTION; ALTER TABLE t ADD COLUMN x INT NOT NULL DEFAULT 0; ALTER TABLE t RENAME COLUMN x TO y; DROP TABLE IF EXISTS t; COMMIT;

PRAGMA foreign_keys = ON; PRAGMA table_info(t); EXPLAIN QUERY PLAN SELECT 1;

SELECT CAST(strftime('%Y', date) AS INTEGER) - 1 year, a - -1, ~b & 0xFF << 2, ifnull(a, 0) FROM t WHERE (a AND b) OR(c) AND a == b AND a <> - b; -- end

CREATE VIEW IF NOT EXISTS v (a, b) AS SELECT DISTINCT x, y FROM t EXCEPT SELECT 1, 2 INTERSECT VALUES (1, 2);

SELECT CASE x WHEN 1 THEN 'one' END, iif(a, b, c), replace(a, 'b', 'c'), coalesce(NULL, 1) /* a comment */ FROM a LEFT JOIN b ON(a.x = b.x) GROUP BY(a);

