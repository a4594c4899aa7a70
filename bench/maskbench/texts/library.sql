CREATE TABLE IF NOT EXISTS authors (
    id INTEGER PRIMARY KEY,
    name VARCHAR(120) NOT NULL,
    born INTEGER CHECK (born BETWEEN 1400 AND 2100),
    country CHAR(2) DEFAULT 'DE'
);
CREATE TABLE books (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    author_id INTEGER NOT NULL REFERENCES authors (id) ON DELETE CASCADE,
    price DECIMAL(8, 2) DEFAULT 0.00,
    published DATE,
    in_print BOOLEAN DEFAULT TRUE,
    UNIQUE (title, author_id)
);
CREATE TABLE loans (
    book_id INTEGER NOT NULL,
    reader VARCHAR(80) NOT NULL,
    since TIMESTAMP NOT NULL,
    until TIMESTAMP,
    CONSTRAINT loans_key PRIMARY KEY (book_id, reader, since),
    FOREIGN KEY (book_id) REFERENCES books (id) ON UPDATE CASCADE
);
INSERT INTO authors (id, name, born, country) VALUES
    (1, 'Jane Austen', 1775, 'GB'),
    (2, 'Johann Wolfgang von Goethe', 1749, 'DE'),
    (3, 'Flann O''Brien', 1911, 'IE');
INSERT INTO books (id, title, author_id, price) VALUES
    (10, 'Pride and Prejudice', 1, 9.95),
    (11, 'Emma', 1, 12.5),
    (12, 'Faust', 2, 7.2e0),
    (13, 'At Swim-Two-Birds', 3, 14);
-- The books that no one has borrowed.
SELECT b.title, a.name AS author
FROM books b
JOIN authors AS a ON a.id = b.author_id
LEFT OUTER JOIN loans l ON l.book_id = b.id
WHERE l.book_id IS NULL AND b.in_print
ORDER BY a.name, b.title DESC NULLS LAST
LIMIT 20 OFFSET 40;
SELECT a.country, COUNT(DISTINCT b.id) AS titles, SUM(b.price) total
FROM authors a INNER JOIN books b ON b.author_id = a.id
WHERE a.born < 1900 OR a.country IN ('GB', 'IE')
GROUP BY a.country
HAVING COUNT(*) > 1 AND MAX(b.price) <= 20 * (1 + 0.19)
ORDER BY titles DESC;
WITH recent AS (
    SELECT book_id, COUNT(*) AS times
    FROM loans
    WHERE since >= '2024-01-01' AND NOT (until IS NOT NULL AND until < since)
    GROUP BY book_id
)
SELECT b.title,
       CASE WHEN r.times > 10 THEN 'popular'
            WHEN r.times BETWEEN 3 AND 10 THEN 'known'
            ELSE 'quiet' END AS class,
       CAST(r.times AS REAL) / 12 per_month
FROM recent r
JOIN books b ON b.id = r.book_id
WHERE b.title LIKE 'A%' AND EXISTS (SELECT 1 FROM authors x WHERE x.id = b.author_id AND x.country <> 'DE');
UPDATE books SET price = price * 1.05, in_print = FALSE
WHERE published < '1990-06-30' AND author_id NOT IN (SELECT id FROM authors WHERE born > 1900);
DELETE FROM loans WHERE until IS NOT NULL AND reader = 'Müller';
SELECT name FROM authors UNION ALL SELECT reader FROM loans EXCEPT SELECT 'nobody'
