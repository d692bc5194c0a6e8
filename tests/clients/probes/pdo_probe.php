<?php
// Reports what PDO does with IDs, as a line of JSON. It is called with IDs as texts.

$ids = array_map("intval", array_slice($argv, 2));
$db = new PDO("pgsql:dbname=" . getenv("PGDATABASE"));

function row($query, ...$parameters)
{
    global $db;
    $statement = $db->prepare($query);
    foreach ($parameters as $n => $value) {
        $statement->bindValue($n + 1, $value, is_int($value) ? PDO::PARAM_INT : PDO::PARAM_STR);
    }
    $statement->execute();
    return $statement->fetch(PDO::FETCH_NUM);
}

function keep($id, $other)
{
    // PDO knows no arrays: they are texts.
    $array = "{" . $id . "," . ($other ?? "NULL") . "}";
    [$back, $many] = row("INSERT INTO kept (id, many) VALUES (?, ?) RETURNING id, many", $id, $array);
    $many = array_map(fn ($one) => $one === "NULL" ? null : $one, explode(",", trim($many, "{}")));
    return [(string) $back, $many, row("SELECT count(*) FROM kept WHERE id = ?", $back)[0]];
}

[$made] = row("INSERT INTO made DEFAULT VALUES RETURNING id");
try {
    row("SELECT flake_timestamp(?)", -1);
} catch (PDOException $error) {
    $error = ["PDOException", $error->getCode()];
}
$read = fn ($id) => (string) json_decode(row("SELECT jsonb_build_object('id', ?::bigint)", $id)[0])->id;
echo json_encode([
    "kept" => array_map(fn ($id) => keep($id, $id), $ids),
    "hole" => keep(42, null),
    "null" => row("INSERT INTO kept (id) VALUES (?) RETURNING id", null)[0],
    "read" => array_map($read, $ids),
    "written" => array_map(fn ($id) => row("SELECT ?::jsonb ->> 'id'", json_encode(["id" => $id]))[0], $ids),
    "made" => [(string) $made, row("SELECT count(*) FROM made WHERE id = ?", $made)[0]],
    "error" => $error,
    "many" => null,
]), "\n";
