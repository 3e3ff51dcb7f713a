-- +goose Up
-- One row: the name by which a queue knows this store. A copy has the same.
CREATE TABLE store_id (
    id TEXT NOT NULL
);
INSERT INTO store_id (id) VALUES (lower(hex(randomblob(16))));

-- +goose Down
DROP TABLE store_id;
