<?php
// PDO: an ID is an int.

$db = new PDO("pgsql:dbname=" . getenv("PGDATABASE"));
$db->exec("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), item text)");

// One row. lastInsertId() is about sequences.
$insert = $db->prepare("INSERT INTO orders (item) VALUES (?) RETURNING id");
$insert->execute(["tea"]);
$id = $insert->fetchColumn();

$find = $db->prepare("SELECT item FROM orders WHERE id = ?");
$find->execute([$id]);
echo gettype($id), " ", $find->fetchColumn(), "\n";

// Many rows in one statement; their IDs increase.
$items = array_map(fn ($number) => "cup $number", range(0, 999));
$insert = $db->prepare("INSERT INTO orders (item) SELECT jsonb_array_elements_text(?) RETURNING id, item");
$insert->execute([json_encode($items)]);
$orders = $insert->fetchAll(PDO::FETCH_KEY_PAIR);
echo array_values($orders) === $items ? "in order" : "mixed", "\n";

try {
    $db->query("SELECT flake_timestamp(-1)");
} catch (PDOException $error) {
    echo $error->getCode(), " ", trim(explode("HINT:", $error->getMessage())[1]), "\n";
}
